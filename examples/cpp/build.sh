#!/usr/bin/env bash
# Builds and checks the C++ client; needs only Debian packages: build.sh PROTOSET OUT VECTORS
#   PROTOSET  TensorFlow Serving's descriptors (build/server/serving_protos.binpb)
#   OUT       the folder to write: OUT/rank HOST:PORT MODEL is the client
#   VECTORS   requests, each with the bytes that the Python client writes for it
set -euo pipefail
sources=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$2/generated"
out=$(cd "$2" && pwd)
protos=(tensorflow/core/framework/{resource_handle,tensor,tensor_shape,types}.proto
  tensorflow_serving/apis/{model,predict}.proto)
protoc --descriptor_set_in="$1" --cpp_out="$out/generated" "${protos[@]}"
compile=(c++ -std=c++20 -O1 -Wall -I "$out/generated" -I "$sources")
"${compile[@]}" -o "$out/check_vectors" "$sources"/{check_vectors,column_request}.cc
"$out/check_vectors" "$3"
mapfile -t generated < <(find "$out/generated" -name '*.pb.cc')
"${compile[@]}" -o "$out/rank" "$sources"/{rank,column_request}.cc "${generated[@]}" -lgrpc++ -lgrpc -lgpr -lprotobuf
