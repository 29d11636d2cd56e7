#!/bin/bash
# Starts the server as TensorFlow Serving's image does: the environment sets the ports, the model's
# name and its path. The container's arguments are flags and override the environment.
set -euo pipefail
name=${MODEL_NAME:-model}
exec "$(dirname "$(readlink -f "$0")")/colcast_model_server" \
  --port="${GRPC_PORT:-8500}" --rest_api_port="${PORT:-8501}" \
  --model_name="$name" --model_base_path="${MODEL_BASE_PATH:-/models}/$name" "$@"
