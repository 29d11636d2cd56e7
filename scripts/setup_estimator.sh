#!/usr/bin/env bash
# The virtual environment .venv-estimator: TensorFlow 2.15, the last one with Estimators; TF-DF and
# TF-Ranking for it.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/environment.sh
require_python
make_environment .venv-estimator requirements/estimator.lock -e .
