#!/usr/bin/env bash
# The rules about who may include or import what (CONTRIBUTING.md, "Layers").
set -euo pipefail
cd "$(dirname "$0")/.."
failed=0
forbid() {  # what, pattern, then git pathspecs
  local what=$1 pattern=$2
  shift 2
  if git grep -nE --untracked "$pattern" -- "$@"; then
    printf 'layers: %s\n' "$what" >&2
    failed=1
  fi
}
forbid 'only server/engine, tf_patches and serving_patches include TensorFlow headers' \
  '#include [<"](tensorflow|tsl|xla)/' \
  '*.h' '*.cc' ':!server/engine/' ':!tf_patches/' ':!serving_patches/' ':!fork/'
forbid 'server/wire includes neither TensorFlow nor gRPC' '#include [<"](tensorflow|grpc|grpcpp)/' 'server/wire/'
forbid 'the client imports no TensorFlow' '^ *(import|from) tensorflow' 'client/'
exit $failed
