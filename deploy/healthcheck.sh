#!/bin/bash
# Whether the server answers HTTP on a port of this machine: healthcheck [PORT]. The image has
# neither curl nor grpc_health_probe, but bash speaks TCP.
set -euo pipefail
exec 3<>"/dev/tcp/127.0.0.1/${1:-8501}"
printf 'GET / HTTP/1.0\r\n\r\n' >&3
IFS=' ' read -r -t 5 _ code _ <&3
[ "$code" = 200 ]
