# For scripts that check a running server: their tools, the binary, and a server on a temporary store.
# Sourced; requires $KEY, a temporary $folder, and `fail MESSAGE`, which ends the script.

readonly START_TIMEOUT_SECONDS=20

# Recreated when the requirements change; an interrupted installation leaves no stamp.
prepare_python() {
  local stamp
  python=${XDG_CACHE_HOME:-$HOME/.cache}/baton/checks
  stamp=$python/requirements.txt
  cmp --silent scripts/requirements.txt "$stamp" && return
  printf 'installing %s\n' "$python"
  rm -rf "$python"
  python3 -m venv "$python" || fail "Python has no venv: install the package python3-venv"
  "$python/bin/pip" install --quiet --disable-pip-version-check --no-deps --requirement scripts/requirements.txt
  cp scripts/requirements.txt "$stamp"
}

build_binary() {
  local target
  # The whole workspace, as in the tests: features of one package alone would compile the libraries again.
  cargo build --quiet --locked --workspace --bin baton
  target=$(cargo metadata --no-deps --format-version=1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
  binary=$target/debug/baton
}

stop_server() {
  [[ -n ${server:-} ]] || return 0
  kill "$server" 2>/dev/null || true
  wait "$server" 2>/dev/null || true
  server=
}

# Starts `baton serve` with additional environment variables and waits until it prints its address.
start_server() {
  local log=$folder/server.log deadline=$((SECONDS + START_TIMEOUT_SECONDS))
  mkdir -p "$folder/home"
  : >"$log"
  env -i PATH="$PATH" HOME="$folder/home" BATON_DATA_DIR="$folder/data" BATON_RELAY_KEY=$KEY \
    BATON_RATE_LIMIT_PER_MINUTE=0 "$@" "$binary" serve --listen 127.0.0.1:0 >/dev/null 2>"$log" &
  server=$!
  until url=$(sed -n 's/^baton listens on //p' "$log") && [[ -n $url ]]; do
    kill -0 "$server" 2>/dev/null && ((SECONDS < deadline)) || { cat "$log" >&2; fail "the server did not start"; }
    sleep 0.05
  done
}
