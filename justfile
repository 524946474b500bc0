# Shorthands; the plain commands work without just.

# List the recipes.
default:
    @just --list

# Run the demonstration on a temporary store.
demo:
    cargo run --release --locked -p baton -- demo

# Run every check.
test:
    scripts/test

# Run the benchmarks.
bench *args:
    scripts/bench {{args}}

# Build the files of a release.
dist *args:
    scripts/dist {{args}}

# Format the code.
fmt:
    cargo fmt --all

# Lint with warnings as errors.
lint:
    cargo clippy --workspace --all-targets --locked -- -D warnings
