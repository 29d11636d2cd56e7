#!/usr/bin/env bash
# Lints the Bazel files with the buildifier that package-lock.json pins; `--fix` rewrites them. npm
# only downloads it: the package contains executables, so Node.js does not run.
set -euo pipefail
cd "$(dirname "$0")/.."
home=build/buildifier

if ! cmp -s fork/package-lock.json "$home/package-lock.json"; then
  command -v npm >/dev/null || {
    echo 'buildifier: npm not found; it downloads the linter of the Bazel files (apt-get install npm)' >&2
    exit 1
  }
  rm -rf "$home"
  mkdir -p "$home"
  cp fork/package.json "$home"
  cp fork/package-lock.json "$home/package-lock.json"
  npm ci --prefix "$home" --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null || {
    rm -rf "$home"
    echo 'buildifier: npm could not fetch it (see above)' >&2
    exit 1
  }
fi

case $(uname -m) in
  aarch64) machine=arm64 ;;
  *) machine=amd64 ;;
esac
mode=(-mode=check)
[ "${1:-}" = --fix ] && mode=()
# These warnings are off because TensorFlow and TF Serving also use native rules.
"$home/node_modules/@bazel/buildifier/buildifier-linux_$machine" "${mode[@]}" \
  -lint=warn -warnings=-native-cc-library,-native-cc-test \
  WORKSPACE BUILD tf_patches/BUILD serving_patches/BUILD \
  $(git ls-files -co --exclude-standard 'bazel/*')
