# Shorthand for the plain commands, which work without just.

# List the recipes.
default:
    @just --list

# Play a whole relay on a throwaway store.
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

# Lint as strictly as the checks do.
lint:
    cargo clippy --workspace --all-targets --locked -- -D warnings
