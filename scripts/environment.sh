# Sourced by the setup scripts: messages, the Python that is wanted, virtual environments.

PYTHON=${PYTHON:-python3}

say() { printf '\033[1m[setup]\033[0m %s\n' "$*"; }
die() { printf 'setup: %s\n' "$*" >&2; exit 1; }

require_python() {
  "$PYTHON" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' ||
    die "Python 3.11 wanted, $("$PYTHON" --version) found; name one with PYTHON=/path/to/python3.11"
}

make_environment() {  # directory, lock file, then what else to install
  local dir=$1 lock=$2 stamp
  shift 2
  stamp=$(cat "$lock" pyproject.toml | sha256sum)
  [ "$(cat "$dir/.stamp" 2>/dev/null)" = "$stamp" ] && return
  say "creating $dir from $lock (downloads TensorFlow, about 260 MB)"
  [ -x "$dir/bin/python" ] || "$PYTHON" -m venv "$dir"
  "$dir/bin/pip" install -qq --disable-pip-version-check --no-deps -r "$lock"
  [ $# = 0 ] || "$dir/bin/pip" install -qq --disable-pip-version-check --no-deps --no-build-isolation "$@"
  echo "$stamp" >"$dir/.stamp"
}
