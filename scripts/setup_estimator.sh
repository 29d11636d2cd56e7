#!/usr/bin/env bash
# The virtual environment .venv-estimator: TensorFlow 2.15, the last one with Estimators; TF-DF and
# TF-Ranking for it.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/environment.sh
if [ "$("$PYTHON" -c 'import sys; print(sys.version_info.minor)')" -gt 11 ] && ! PYTHON=$(command -v python3.11); then
  say "no Python 3.11, which TensorFlow 2.15 needs: the tests of Estimators are skipped"
  exit
fi
require_python 11
make_environment .venv-estimator requirements/estimator.lock -e .
