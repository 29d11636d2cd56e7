#!/usr/bin/env bash
# Builds and checks the Java client; needs only Debian packages: build.sh PROTOSET OUT VECTORS
#   PROTOSET  TensorFlow Serving's descriptors (build/server/serving_protos.binpb)
#   OUT       the folder to write: OUT/rank HOST:PORT MODEL is the client
#   VECTORS   requests, each with the bytes that the Python client writes for it
set -euo pipefail
sources=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$2/generated" "$2/classes"
out=$(cd "$2" && pwd)
protos=(tensorflow/core/framework/{resource_handle,tensor,tensor_shape,types}.proto
  tensorflow_serving/apis/{model,predict}.proto)
protoc --descriptor_set_in="$1" --java_out="$out/generated" "${protos[@]}"
jars=/usr/share/java
classpath="$out/classes"
for jar in grpc-{api,context,core,netty,protobuf,protobuf-lite,stub} guava perfmark-{api,impl} protobuf \
  netty-{buffer,codec,codec-http,codec-http2,common,handler,resolver,transport}; do
  classpath+=":$jars/$jar.jar"
done
find "$out/generated" -name '*.java' >"$out/sources"
javac -nowarn -Xlint:none -encoding UTF-8 -cp "$classpath" -d "$out/classes" @"$out/sources" "$sources"/*.java
java -cp "$classpath" CheckVectors "$3"
printf '#!/bin/sh\nexec java -cp "%s" Rank "$@"\n' "$classpath" >"$out/rank"
chmod +x "$out/rank"
