#!/usr/bin/env bash
# Builds all files of a release in build/release (docs/versions.md). If the same packages are
# installed, the same commit always makes the same bytes; the files have the commit's time.
set -euo pipefail
cd "$(dirname "$0")/../.."
version=$(cat VERSION)
folder=build/release
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
say() { printf '\033[1m[release]\033[0m %s\n' "$*"; }

tag=$(git describe --exact-match --match "v$version" 2>/dev/null || true)
[ -n "$tag" ] && [ -z "$(git status --porcelain)" ] ||
  say "a trial, no release: this tree is not exactly the commit tagged v$version"
rm -rf "$folder"
mkdir -p "$folder"
say "wheels"
scripts/wheels.sh --all "$folder"
if [ -x build/arm64/server/bin/colcast_model_server ]; then
  say "wheel for ARM64"
  scripts/arm64.sh
  scripts/wheels.sh --arm64 --all "$folder"
  say "image for ARM64"
  scripts/release/image.sh --arm64 "$folder/colcast-server-$version.arm64.oci.tar" || [ $? = 3 ]
else
  say "no wheel and no image for ARM64: make arm64 builds the server"
fi
say "image"
scripts/release/image.sh "$folder/colcast-server-$version.oci.tar" || [ $? = 3 ]
say "bill of materials, notes, sums"
.venv/bin/cyclonedx-py requirements requirements/build.lock --pyproject pyproject.toml \
  --output-reproducible --of JSON -o "$folder/colcast-$version.cdx.json"
# shellcheck disable=SC2046
dpkg-query -W $(grep '^lib' scripts/debian-packages.txt) > "$folder/colcast-server-$version.linked.txt"
.venv/bin/python scripts/release/notes.py "$version" > "$folder/RELEASE_NOTES.md"
(cd "$folder" && sha256sum -- * > ../SHA256SUMS && mv ../SHA256SUMS . && ls -l)
