#!/usr/bin/env bash
# Makes the virtual environment .venv-jax: JAX 0.6, the last release that can also write
# TensorFlow's own ops, with .venv's versions of TensorFlow and Keras.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/environment.sh
require_python 13
make_environment .venv-jax requirements/jax.lock
