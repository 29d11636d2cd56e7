#!/usr/bin/env bash
# Builds the server's image from build/server as an OCI archive, without a daemon or a registry:
#   scripts/release/image.sh ARCHIVE.tar
#   scripts/release/image.sh --arm64 ARCHIVE.tar   from build/arm64/server
# Also writes ARCHIVE.packages.txt, the list of the Debian packages in the image. Instead of
# debian:12-slim, the image contains Debian 12's essential packages, which mmdebstrap downloads from
# this machine's package sources. If this machine cannot build an image, prints the reason and exits
# with code 3.
set -euo pipefail
cd "$(dirname "$0")/../.."
fields='${Package}\t${Version}\t${Architecture}\n'
build=build/server architecture=amd64 variant=essential hook=customize packages=libstdc++6,ca-certificates
list="dpkg-query --admindir=\"\$1/var/lib/dpkg\" -Wf '$fields'"
if [ "$1" = --arm64 ]; then
  shift
  # The packages' own scripts cannot run on this machine, so that the essential packages are named and only unpacked.
  build=build/arm64/server architecture=arm64 variant=extract hook=extract
  packages+=,$(dpkg-query -Wf '${Package} ${Essential}\n' | awk '$2 == "yes" {print $1}' | paste -sd,)
  list="for deb in \"\$1\"/var/cache/apt/archives/*.deb; do dpkg-deb -W --showformat='$fields' \"\$deb\"; done"
fi
archive=$(realpath -m "$1")
version=$(cat VERSION)
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct)}"
export SOURCE_DATE_EPOCH
for tool in buildah mmdebstrap; do
  command -v $tool >/dev/null || { echo "no image: no $tool here (apt-get install $tool)"; exit 3; }
done
[ "$(id -u)" = 0 ] || { echo "no image: only root can build it here"; exit 3; }

work=$(mktemp -d build/image.XXXXXX)
trap 'rm -rf "$work"' EXIT
buildah() { command buildah --storage-driver vfs --root "$PWD/$work/storage" --runroot "$PWD/$work/run" "$@"; }

apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian' \
  | mmdebstrap --quiet --variant=$variant --architectures=$architecture --include="$packages" \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
    --$hook-hook="$list > '$PWD/$work/packages'" bookworm "$work/base.tar" -
buildah from --arch $architecture --name base scratch > "$work/log"
buildah add --quiet base "$work/base.tar" / >> "$work/log"
buildah config --arch $architecture --created-by mmdebstrap --cmd /bin/bash base
buildah commit --quiet --timestamp "$SOURCE_DATE_EPOCH" base localhost/base >> "$work/log"
buildah rm base >> "$work/log"

deploy/assemble_runtime.sh $build "$work/build/runtime"
buildah build --quiet --arch $architecture --isolation chroot --timestamp "$SOURCE_DATE_EPOCH" --file deploy/Dockerfile \
  --build-arg BASE=localhost/base --build-context build="$PWD/$work/build" --tag "colcast-server:$version" "$work/build" >> "$work/log"
buildah push --quiet "colcast-server:$version" "oci:$work/oci:$version"
tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
  -cf "$archive" -C "$work/oci" .
sort "$work/packages" > "${archive%.tar}.packages.txt"
