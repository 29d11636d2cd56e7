#!/usr/bin/env bash
# Writes the version into the Kubernetes manifests, the only files that cannot read it from VERSION:
#   scripts/version.sh [NEW_VERSION]
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# = 0 ] || echo "$1" > VERSION
version=$(cat VERSION)
sed -i -E "s/(image: colcast-server:).*/\1$version/" deploy/kubernetes/base/deployment.yaml \
  deploy/kubernetes/kserve/serving_runtime.yaml
sed -i -E "s/(newTag: ).*/\1$version/" deploy/kubernetes/overlays/example/kustomization.yaml
