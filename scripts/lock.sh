#!/usr/bin/env bash
# Renews requirements/dev.lock from requirements/dev.in, in a throw-away environment.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir"
grep -v '^tensorflow-serving-api' requirements/dev.in >"$dir/with-dependencies.in"
grep '^tensorflow-serving-api' requirements/dev.in >"$dir/alone.in"
"$dir/bin/pip" install -q -r "$dir/with-dependencies.in"
"$dir/bin/pip" install -q --no-deps -r "$dir/alone.in"
"$dir/bin/pip" freeze --all | grep -viE '^(pip|wheel)=' >requirements/dev.lock
