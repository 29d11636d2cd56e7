#!/usr/bin/env bash
# Makes the virtual environment .venv-estimator: TensorFlow 2.15, the last release with Estimators,
# and matching releases of TF-DF and TF-Ranking.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/environment.sh
if [ "$("$PYTHON" -c 'import sys; print(sys.version_info.minor)')" -gt 11 ] && ! PYTHON=$(command -v python3.11); then
  say "no Python 3.11, which TensorFlow 2.15 needs: the tests of Estimators are skipped"
  exit
fi
require_python 11
make_environment .venv-estimator requirements/estimator.lock -e .
