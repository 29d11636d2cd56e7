#!/usr/bin/env bash
# Builds and checks the Go client; needs only Debian packages: build.sh PROTOSET OUT VECTORS
#   PROTOSET  TensorFlow Serving's descriptors (build/server/serving_protos.binpb)
#   OUT       the folder to write: OUT/rank is the client
#   VECTORS   requests, each with the bytes that the Python client writes for it
set -euo pipefail
sources=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$2/gopath/src/colcast"
out=$(cd "$2" && pwd)
ln -sfn "$sources/columns" "$out/gopath/src/colcast/columns"
ln -sfn "$sources/rank" "$out/gopath/src/colcast/rank"
protos=(tensorflow/core/framework/{resource_handle,tensor,tensor_shape,types}.proto
  tensorflow_serving/apis/{model,predict}.proto)
packages=$(printf 'M%s=colcast/serving;serving,' "${protos[@]}")
protoc --descriptor_set_in="$1" --go_out="${packages%,}:$out/gopath/src" "${protos[@]}"
export GO111MODULE=off GOPATH="$out/gopath:/usr/share/gocode" GOCACHE="$out/cache" GOFLAGS=
COLCAST_VECTORS=$(realpath "$3") go test colcast/columns
go build -o "$out/rank" colcast/rank
