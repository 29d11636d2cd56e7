#!/usr/bin/env bash
# Renews requirements/NAME.lock from requirements/NAME.in in a temporary environment:
# scripts/lock.sh [NAME], where NAME is dev, estimator, jax or build. Packages that build.in does
# not pin get the version in dev.lock.
set -euo pipefail
cd "$(dirname "$0")/.."
name=${1:-dev}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir"
alone='^(tensorflow-(decision-forests|ranking|serving-api|text)|ydf-tf|tritonclient)=='
grep -vE "$alone" "requirements/$name.in" >"$dir/with-dependencies.in"
grep -E "$alone" "requirements/$name.in" >"$dir/alone.in" || true
constraint=()
[ "$name" != build ] || constraint=(-c requirements/dev.lock)
"$dir/bin/pip" install -q "${constraint[@]}" -r "$dir/with-dependencies.in"
"$dir/bin/pip" install -q --no-deps -r "$dir/alone.in"
"$dir/bin/pip" freeze --all | grep -viE '^(pip|wheel)=' >"requirements/$name.lock"
