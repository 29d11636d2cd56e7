#!/usr/bin/env bash
# Packs and unpacks the saved inputs of the fuzzers: one archive per fuzzer; the same inputs always
# make the same bytes.
#   scripts/corpus.sh unpack NAME FOLDER
#   scripts/corpus.sh pack   NAME FOLDER   # renews tests/hostile/corpus/NAME.tar.gz
set -euo pipefail
archive=$(dirname "$0")/../tests/hostile/corpus/$2.tar.gz
case $1 in
  unpack)
    mkdir -p "$3"
    tar -xzf "$archive" -C "$3"
    ;;
  pack)
    LC_ALL=C tar -c --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=0644 \
      --format=ustar -C "$3" -T <(cd "$3" && find . -maxdepth 1 -type f -printf '%f\n' | LC_ALL=C sort) \
      | gzip -9n > "$archive"
    ;;
  *)
    sed -n '2,4s/^# //p' "$0" >&2
    exit 2
    ;;
esac
