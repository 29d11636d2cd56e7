# Functions for the setup scripts: messages, Debian packages, the required Python, virtual
# environments.

PYTHON=${PYTHON:-python3}

# Downloads TensorFlow's wheel for ARM64, for which there is no tensorflow-cpu.
TENSORFLOW_FOR_ARM64=(.venv/bin/python -m pip -qq --disable-pip-version-check install --no-deps --no-compile
  --only-binary :all: --platform manylinux_2_17_aarch64 --platform manylinux_2_27_aarch64)

say() { printf '\033[1m[setup]\033[0m %s\n' "$*"; }
die() { printf 'setup: %s\n' "$*" >&2; exit 1; }

install_debian_packages() {  # names; skips those that are installed
  command -v dpkg-query >/dev/null || die "dpkg-query not found: setup supports Debian 12, 13 and their derivatives"
  local missing
  missing=$(comm -23 <(printf '%s\n' "$@" | sort) \
    <(dpkg-query -W -f='${db:Status-Abbrev}${binary:Package}\n' "$@" 2>/dev/null |
      sed -n 's/^ii *//p' | sed 's/:.*//' | sort))
  [ -z "$missing" ] && return
  say "installing Debian packages:" $missing
  [ "$(id -u)" = 0 ] || die "these Debian packages are missing and only root can install them:" $missing
  apt-get update -qq
  # shellcheck disable=SC2086
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
}

require_python() {  # N: accepts Python 3.11 to 3.N
  "$PYTHON" -c "import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, $1))" ||
    die "Python 3.11 to 3.$1 wanted, $("$PYTHON" --version) found; name one with PYTHON=/path/to/python3.11"
}

make_environment() {  # directory, lock file, then further packages to install
  local dir=$1 lock=$2 stamp compile=--compile
  shift 2
  stamp=$(cat "$lock" pyproject.toml VERSION | sha256sum)
  [ "$(cat "$dir/.stamp" 2>/dev/null)" = "$stamp" ] && return
  say "creating $dir from $lock (downloads TensorFlow, about 260 MB)"
  [ -x "$dir/bin/python" ] || "$PYTHON" -m venv "$dir"
  # Most of the 15,000 modules are never imported, and Python compiles the others when they are.
  [ -n "${PYTHONDONTWRITEBYTECODE:-}" ] || compile=--no-compile
  "$dir/bin/pip" install -qq --disable-pip-version-check "$compile" --no-deps -r "$lock"
  [ $# = 0 ] || "$dir/bin/pip" install -qq --disable-pip-version-check "$compile" --no-deps --no-build-isolation "$@"
  echo "$stamp" >"$dir/.stamp"
}
