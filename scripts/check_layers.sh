#!/usr/bin/env bash
# The rules about who may include or import what (CONTRIBUTING.md, "Layers").
set -euo pipefail
cd "$(dirname "$0")/.."
failed=0
forbid() {  # what, pattern, exception, then git pathspecs
  local what=$1 pattern=$2 exception=$3
  shift 3
  if git grep -nE --untracked -e "$pattern" --and --not -e "$exception" -- "$@"; then
    printf 'layers: %s\n' "$what" >&2
    failed=1
  fi
}
none='$^'
generated='\.pb\.h"'  # of TensorFlow's protos, made for the server's own protobuf
forbid 'only server/engine, tf_patches and serving_patches include TensorFlow headers' \
  '#include [<"](tensorflow|tsl|xla)/' "$generated" \
  '*.h' '*.cc' ':!server/engine/' ':!tf_patches/' ':!serving_patches/' ':!fork/'
forbid 'server/wire includes neither TensorFlow nor gRPC' '#include [<"](tensorflow|grpc|grpcpp)/' "$none" 'server/wire/'
forbid 'the client imports no TensorFlow' '^ *(import|from) tensorflow' "$none" 'client/'
exit $failed
