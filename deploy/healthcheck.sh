#!/bin/bash
# Checks whether the server answers HTTP on a port of this machine: healthcheck [PORT], by default
# the image's port. If the server uses TLS, only checks whether it answers a handshake. Uses bash's
# TCP sockets, because the image has neither curl nor openssl.
set -euo pipefail
port=${1:-${PORT:-8501}}

# A TLS 1.2 ClientHello: record, handshake, version, random, no session; six cipher suites; and the
# groups, point formats and signature algorithms that those suites need.
hello='\x16\x03\x01\x00\x5d\x01\x00\x00\x59\x03\x03'
hello+=$(printf '\\x00%.0s' {1..33})
hello+='\x00\x0c\xc0\x2b\xc0\x2f\xcc\xa9\xcc\xa8\xc0\x2c\xc0\x30\x01\x00\x00\x24'
hello+='\x00\x0a\x00\x08\x00\x06\x00\x1d\x00\x17\x00\x18\x00\x0b\x00\x02\x01\x00'
hello+='\x00\x0d\x00\x0e\x00\x0c\x04\x03\x08\x04\x04\x01\x05\x03\x08\x05\x08\x06'

answers_http() {
  exec 3<>"/dev/tcp/127.0.0.1/$port"
  printf 'GET / HTTP/1.0\r\n\r\n' >&3
  IFS=' ' read -r -t 5 _ code _ <&3 && [ "$code" = 200 ]
}

answers_tls() {
  exec 3<>"/dev/tcp/127.0.0.1/$port"
  printf '%b' "$hello" >&3
  LC_ALL=C read -r -t 5 -N 1 kind <&3 && [ "$kind" = $'\x16' ] # the server answered with a TLS handshake record
}

answers_http 2>/dev/null || answers_tls
