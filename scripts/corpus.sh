#!/usr/bin/env bash
# Packs or unpacks the fuzzers' saved inputs, one folder per fuzzer. The same inputs always make the
# same archive.
#   scripts/corpus.sh unpack FOLDER
#   scripts/corpus.sh pack   FOLDER   # renews tests/hostile/corpus.tar.gz
set -euo pipefail
archive=$(dirname "$0")/../tests/hostile/corpus.tar.gz
case $1 in
  unpack)
    rm -rf "$2" && mkdir -p "$2"
    tar -xzf "$archive" -C "$2"
    ;;
  pack)
    LC_ALL=C tar -c --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=0644 \
      --format=ustar -C "$2" -T <(cd "$2" && find . -type f -printf '%P\n' | LC_ALL=C sort) |
      gzip -9n > "$archive"
    ;;
  *)
    sed -n '2,5s/^# //p' "$0" >&2
    exit 2
    ;;
esac
