#!/usr/bin/env bash
# Copies the files that the server needs at run time into a directory, laid out as in the image:
#   deploy/assemble_runtime.sh BUILD_DIRECTORY DESTINATION
# DESTINATION/opt/colcast/bin gets the executable, the engine library, TensorFlow's two shared
# libraries, the entry point and the health check. DESTINATION/opt/colcast gets the op libraries of
# TF Text and Decision Forests, if they are installed. The remaining libraries (libc, libstdc++,
# libgcc) are part of every Debian 12.
set -euo pipefail
[ $# = 2 ] || { echo "usage: assemble_runtime.sh BUILD_DIRECTORY DESTINATION" >&2; exit 2; }
build=$1/bin
bin=$2/opt/colcast/bin
mkdir -p "$bin"
engine=$(echo "$build"/libcolcast_engine-*.so)
strip=strip
readelf -h "$engine" | grep -q AArch64 && strip=aarch64-linux-gnu-strip
for file in "$build/colcast_model_server" "$engine"; do
  "$strip" --strip-unneeded -o "$bin/$(basename "$file")" "$file"
done
link() { # 800 MB, so hard links if possible
  mkdir -p "$2"
  ln -f "$1" "$2/" 2>/dev/null || cp "$1" "$2/"
}
# The engine finds TensorFlow's libraries in its own folder: $ORIGIN comes first in its run path,
# before the folder that it was linked with. They find those of ARM64's wheel in ../tensorflow.libs.
tensorflow=$(readelf -d "$engine" | sed -n 's/.*PATH.*\[$ORIGIN:\([^:]*\).*\]/\1/p')
packages=$(dirname "$tensorflow")
for library in cc framework; do link "$tensorflow/libtensorflow_$library.so.2" "$bin"; done
for library in "$packages"/tensorflow.libs/*; do
  [ ! -e "$library" ] || link "$library" "$2/opt/colcast/tensorflow.libs"
done
# server/engine/op_libraries.cc searches beside TensorFlow's folder, which is bin here.
for folder in tensorflow_text/python/ops ydf_tf; do
  [ -d "$packages/$folder" ] || continue
  install -m 755 -Dt "$2/opt/colcast/$folder" "$packages/$folder"/*.so
done
for script in entrypoint healthcheck; do cp "$(dirname "$0")/$script.sh" "$bin/$script"; done
chmod 755 "$bin"/*
# The paths that TensorFlow Serving's image uses.
mkdir -p "$2/usr/bin"
ln -sf ../../opt/colcast/bin/entrypoint "$2/usr/bin/tf_serving_entrypoint.sh"
ln -sf ../../opt/colcast/bin/colcast_model_server "$2/usr/bin/tensorflow_model_server"
