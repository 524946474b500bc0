#!/bin/sh
# Installs a released baton binary with its manual pages and shell completions, after checking its SHA-256.
set -eu

# Address of the release; scripts/dist writes it here.
default_from=''

usage() {
  cat <<'HELP'
Usage: install.sh [--from URL|FOLDER] [--prefix FOLDER]

Installs baton for this machine (Linux, x86-64 or arm64) to PREFIX/bin, its manual pages to
PREFIX/share/man, its documentation to PREFIX/share/doc/baton and its completions to
PREFIX/share. Nothing is installed unless the SHA-256 of the archive is the one in SHA256SUMS.

  --from URL|FOLDER  Release: an https address, or a folder with the files of scripts/dist
  --prefix FOLDER    Where to install [default: ~/.local]

Remove it with: rm -r PREFIX/bin/baton PREFIX/share/doc/baton PREFIX/share/man/man1/baton*.1,
and the completions with: find PREFIX/share \( -name baton.fish -o -name _baton -o -path '*/bash-completion/*/baton' \) -delete
HELP
}

fail() {
  printf 'install.sh: %s\n' "$1" >&2
  exit 1
}

fetch() { # fetch NAME: copies a file of the release to the temporary folder
  case $from in
    https://*)
      if command -v curl >/dev/null; then
        curl --proto '=https' --proto-redir '=https' --tlsv1.2 --fail --silent --show-error --location \
          --output "$work/$1" "$from/$1"
      elif command -v wget >/dev/null; then
        wget --https-only --quiet --output-document="$work/$1" "$from/$1"
      else
        fail 'cannot download: install curl or wget'
      fi
      ;;
    http://127.0.0.1[:/]* | http://localhost[:/]*)
      curl --fail --silent --show-error --output "$work/$1" "$from/$1"
      ;;
    *://*) fail "cannot download from $from: use an https address" ;;
    *) cp "$from/$1" "$work/$1" ;;
  esac || fail "cannot read $from/$1"
}

checksum() {
  if command -v sha256sum >/dev/null; then
    sha256sum "$1"
  elif command -v shasum >/dev/null; then
    shasum -a 256 "$1"
  else
    fail 'cannot check the download: install sha256sum (coreutils) or shasum'
  fi | cut -d ' ' -f 1
}

from=$default_from
prefix=${HOME:-}/.local
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help)
      usage
      exit
      ;;
    --from | --prefix)
      [ $# -ge 2 ] || fail "$1 needs a value; see --help"
      if [ "$1" = --from ]; then from=${2%/}; else prefix=${2%/}; fi
      shift 2
      ;;
    *)
      usage >&2
      exit 2
      ;;
  esac
done
[ -n "$from" ] || fail 'no release given; add --from URL or --from FOLDER'

[ "$(uname -s)" = Linux ] || fail "there is no binary for $(uname -s); build it: cargo install --locked --path crates/baton"
case $(uname -m) in
  x86_64 | amd64) target=x86_64-unknown-linux-musl ;;
  aarch64 | arm64) target=aarch64-unknown-linux-musl ;;
  *) fail "there is no binary for $(uname -m); build it: cargo install --locked --path crates/baton" ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

fetch SHA256SUMS
# One line per file: the checksum, two spaces, the name.
line=$(grep -E "^[0-9a-f]{64}  baton-[0-9A-Za-z.+-]+-$target\.tar\.gz\$" "$work/SHA256SUMS") || fail "$from has no archive for $target"
[ "$(printf '%s\n' "$line" | wc -l)" -eq 1 ] || fail "$from/SHA256SUMS names several archives for $target"
expected=${line%% *}
archive=${line##* }
fetch "$archive"
actual=$(checksum "$work/$archive")
[ "$actual" = "$expected" ] || fail "the checksum of $archive is $actual, not $expected: nothing was installed"

tar -xzf "$work/$archive" -C "$work"
folder=$work/${archive%.tar.gz}
"$folder/bin/baton" --version >/dev/null || fail 'the binary does not run on this machine: nothing was installed'

mkdir -p "$prefix/bin"
# Renaming replaces a running binary without changing it.
cp "$folder/bin/baton" "$prefix/bin/.baton.new"
chmod 755 "$prefix/bin/.baton.new"
mv -f "$prefix/bin/.baton.new" "$prefix/bin/baton"
(cd "$folder/share" && find . -type f) | while IFS= read -r file; do
  mkdir -p "$prefix/share/${file%/*}"
  cp "$folder/share/$file" "$prefix/share/$file"
done

printf 'installed %s in %s\n' "$("$prefix/bin/baton" --version)" "$prefix/bin"
case :${PATH}: in
  *:"$prefix/bin":*) printf 'next: baton setup\n' ;;
  *) printf 'next: add %s to PATH, then run: baton setup\n' "$prefix/bin" ;;
esac
