#!/usr/bin/env bash
# The virtual environment .venv-jax: JAX 0.6, the last one that also writes TensorFlow's own ops, and
# TensorFlow and Keras in .venv's versions.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/environment.sh
require_python 13
make_environment .venv-jax requirements/jax.lock
