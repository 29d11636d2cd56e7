#!/usr/bin/env bash
# Checks that includes and imports follow the arrows of CONTRIBUTING.md, "Layers".
set -euo pipefail
cd "$(dirname "$0")/.."
failed=0
fail() {
  printf 'layers: %s\n' "$1" >&2
  failed=1
}
forbid() {  # what, pattern, exception, then git pathspecs
  local what=$1 pattern=$2 exception=$3
  shift 3
  if git grep -nE --untracked -e "$pattern" --and --not -e "$exception" -- "$@"; then fail "$what"; fi
}
none='$^'

# C++: a folder, then the other folders that it may include; `shared` stands for server/*.h.
declared=
includes() {
  local folder=$1 allowed
  shift
  declared+=" $folder "
  allowed=$(printf '|%s/' "$folder" "$@")
  allowed=${allowed//shared\//server\/[a-z0-9_]+\\.h}
  forbid "$folder includes of our folders only: $folder $*" \
    '#include "(server|serving_patches|tf_patches)/' "#include \"(${allowed:1})" "$folder/*.h" "$folder/*.cc"
}
includes tf_patches
includes serving_patches tf_patches
includes server/base
includes server/protos server/base
includes server/wire server/base
includes server/states server/base server/wire
includes server/tables server/base server/wire
includes server/items server/base server/tables server/wire
includes server/scheduling server/base
includes server/engine server/base server/states server/tables server/wire serving_patches tf_patches
includes server/inference server/base server/engine server/items server/metrics server/protos server/scheduling server/wire
includes server/metrics server/base server/engine server/wire
includes server/tracing server/base server/engine server/metrics server/wire
includes server/request_log server/base server/inference server/wire
includes server/models server/base server/engine server/inference server/items server/protos server/request_log server/wire shared
includes server/api server/base server/inference server/metrics server/scheduling server/tracing server/wire shared
includes server/net server/base server/protos server/scheduling
includes server/http1 server/base server/net server/scheduling server/wire
includes server/rest server/api server/base server/http1 server/inference server/models server/protos server/scheduling server/wire shared
includes server/pages server/base server/http1 server/inference server/metrics server/models shared
includes server/http2 server/base server/net server/scheduling server/wire
includes server/sender server/base server/http2 server/net server/scheduling
includes server/rpc server/api server/base server/http2 server/inference server/metrics server/models server/net server/protos server/request_log server/scheduling server/wire shared
for folder in server/*/; do
  folder=${folder%/}
  case "$declared server/flags server/fuzz server/__pycache__ " in # flags and fuzz may use every folder
    *" $folder "*) ;;
    *) fail "$folder: scripts/check_layers.sh does not say what it may include" ;;
  esac
done
forbid 'of server/engine, only engine.h is included elsewhere' \
  '#include "server/engine/' '"server/engine/engine\.h"' 'server/*.h' 'server/*.cc' ':!server/engine/'
generated='\.pb\.h"'  # TensorFlow's protos, compiled for the server's own protobuf
forbid 'only server/engine, tf_patches and serving_patches include TensorFlow headers' \
  '#include [<"](tensorflow|tsl|xla)/' "$generated" \
  '*.h' '*.cc' ':!server/engine/' ':!tf_patches/' ':!serving_patches/'
forbid 'server/base, server/wire, server/states, server/tables and server/items include no TensorFlow' \
  '#include [<"]tensorflow/' "$none" 'server/base/*' 'server/wire/*' 'server/states/*' 'server/tables/*' 'server/items/*'
forbid 'threads are made by server/base/thread.h, which can fail' \
  '\bstd::(j?thread|async)\b|\bpthread_create\b' 'std::thread::' 'server/*.h' 'server/*.cc' \
  ':!server/base/thread*' ':!*_test.cc' ':!*testing.h'
forbid 'the server includes no gRPC library' '#include [<"](grpc|grpcpp)/' "$none" '*.h' '*.cc' ':!examples/'

# Python: a package, then the other packages that it may import.
imports() {
  local package=$1 allowed
  allowed=$(printf '|%s' "$@")
  forbid "$package imports of our packages only: $*" '^ *(from|import) (colcast|fork|tests)\b' \
    "^ *(from|import) (colcast\.)?(${allowed:1})\b" "$package/*.py"
  forbid "$package imports another package's private module" \
    '^ *(from|import) colcast\.[a-z_.]+(\._| import _)' "colcast\.$package\b" "$package/*.py"
}
imports client
imports cli
imports export cli client
imports items cli client
imports server cli
imports zoo export
imports loadtest cli client export items server zoo
imports bench cli client export items loadtest server zoo
imports fork

# Within a package: a folder, then the other folders of the package that it may import.
within() {
  local package=${1%/*} allowed
  allowed=$(printf '|%s' "${1#*/}" "${@:2}")
  forbid "$1 imports of its package only: ${*:2}" "^ *(from|import) colcast\.$package\b" \
    "colcast\.$package\.(${allowed:1})\b" "$1/*.py"
}
within client/columns _errors _settings messages wire
within client/request _errors _settings messages wire columns
within client/transport _errors _settings
within export/graph
within export/convert graph
within export/trials graph convert
within export/rows graph
within export/cut graph convert trials rows
within export/report graph convert trials rows cut
within loadtest/send
within loadtest/measure send
within loadtest/report send measure
within loadtest/compare send measure report options
within loadtest/tune send measure report compare options
within loadtest/locust send measure
forbid 'the client imports no TensorFlow' '^ *(import|from) tensorflow' "$none" 'client/'
exit $failed
