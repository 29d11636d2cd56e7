#!/usr/bin/env bash
# Builds the server for ARM64 with Debian's cross compiler, in build/arm64, and tests it in an emulator.
#   scripts/arm64.sh        builds executable, engine and load generator in build/arm64/server
#   scripts/arm64.sh test   compares the emulated server's answers with the original models', and runs the tests that use
#                           a server; needs `make setup`, too
# Neither changes this machine's packages, except for the compiler and the emulator: Debian's ARM64 libraries are
# unpacked in build/arm64/sysroot, TensorFlow's wheel in build/arm64/tensorflow-RELEASE.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/environment.sh
folder=$PWD/build/arm64
python=.venv/bin/python
release=$($python -c 'from importlib.metadata import version as v; print(v("tensorflow-cpu"))')

make_sysroot() {  # unpacks the libraries of scripts/debian-packages.txt and all that they depend on
  [ -f "$folder/sysroot/.complete" ] && return
  say "unpacking Debian's ARM64 libraries in build/arm64/sysroot"
  local apt=$folder/apt packages
  packages=$(grep -E '^(lib|rapidjson|zlib)' scripts/debian-packages.txt)
  rm -rf "$folder/sysroot"
  mkdir -p "$folder/sysroot" "$apt/lists/partial" "$apt/archives/partial"
  : > "$apt/status" # as if no package were installed
  local options=(-qq -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o Dir::State="$apt" -o Dir::Cache="$apt"
    -o Dir::State::status="$apt/status" -o APT::Sandbox::User=root)
  apt-get "${options[@]}" update
  # shellcheck disable=SC2086
  apt-get "${options[@]}" install -y --download-only --no-install-recommends libc6-dev libstdc++6 $packages > "$apt/log"
  for package in "$apt"/archives/*.deb; do dpkg -x "$package" "$folder/sysroot"; done
  touch "$folder/sysroot/.complete"
}

build() {
  install_debian_packages g++-aarch64-linux-gnu
  make_sysroot
  local tensorflow=$folder/tensorflow-$release
  [ -d "$tensorflow" ] || "${TENSORFLOW_FOR_ARM64[@]}" --target "$tensorflow" "tensorflow==$release"
  [ -f "$folder/server/build.ninja" ] ||
    cmake -S . -B "$folder/server" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCOLCAST_PYTHON="$PWD/$python" \
      -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/aarch64.cmake" -DCOLCAST_TENSORFLOW="$tensorflow/tensorflow" \
      > "$folder/configure.log" || { cat "$folder/configure.log" >&2; die "cmake failed"; }
  say "building for ARM64"
  cmake --build "$folder/server" --target colcast_model_server colcast_engine colcast_sender
}

# Writes an executable that runs the server in the emulator. Tests use the one that COLCAST_MODEL_SERVER names.
make_launcher() {
  install_debian_packages qemu-user-static
  mkdir -p "$folder/emulated"
  cat > "$folder/emulated/colcast_model_server" << LAUNCHER
#!/bin/sh
exec qemu-aarch64-static -L $folder/sysroot $folder/server/bin/colcast_model_server "\$@"
LAUNCHER
  chmod +x "$folder/emulated/colcast_model_server"
  export COLCAST_MODEL_SERVER=$folder/emulated/colcast_model_server
}

# Not `pointwise`, whose scores are NaN on ARM64: docs/versions.md says why.
models=(softmax keep_best keep_cheapest branch_on_country unique_counts scalar_output one_row_output unmasked_mean
  unmasked_tags plain_functional masked_attention sparse_lookups ragged_layers)
tests=(tests/conformance/test_{as_sent,expansion}.py tests/items/test_served.py
  tests/server/test_{domains,inference_protocol,mapped_tables,ports,predict,rest,runs}.py)

run_tests() {
  say "comparing answers of the emulated server with the original models', computed on this machine"
  $python -m tests.independence --answers 128 --variants default --tolerance 1e-5 --models "${models[@]}"
  say "running tests with the emulated server"
  $python -m pytest -q --timeout=1800 "${tests[@]}"
}

case ${1:-} in
  "") build ;;
  test)
    build
    make_launcher
    run_tests
    ;;
  *) die "usage: scripts/arm64.sh [test]" ;;
esac
