#!/usr/bin/env bash
# Compiles for ARM64, by Debian's cross compiler, what needs no TensorFlow: all of the executable. Nothing is
# linked, and the headers are this machine's: those of libraries are the same for both.
#   scripts/check_arm64.sh [FOLDER]   # of server/; by default all of them
set -euo pipefail
cd "$(dirname "$0")/.."
compiler=aarch64-linux-gnu-g++
if ! command -v $compiler >/dev/null; then
  echo "not compiled for ARM64: no $compiler here (apt-get install g++-aarch64-linux-gnu)"
  exit 0
fi
# The commands of CMake's that name no folder of the wheel, one a line: include folders, then the source.
commands() {
  .venv/bin/python - "$PWD/${1:-server}/" << 'PYTHON'
import json, re, shlex, sys
for entry in json.load(open("build/server/compile_commands.json")):
    source, words = entry["file"], shlex.split(entry["command"])
    wanted = source.startswith((sys.argv[1], sys.argv[1].replace("/server/", "/build/server/")))
    if not wanted or re.search(r"_(test|benchmark|fuzz)\.cc$|run_corpus", source):
        continue
    if any(re.search("site-packages/tensorflow|/tests?/", word) for word in words):
        continue
    kept = [word for word in words[1:] if re.match("-[DIfsW]", word)]
    folders = [words[at + 1] for at, word in enumerate(words) if word == "-isystem"]
    print(*map(shlex.quote, [*kept, *(f"-isystem{folder}" for folder in folders), source]))
PYTHON
}
list=$(commands "$@")
printf '%s\n' "$list" | tr '\n' '\0' | xargs -0 -P "$(nproc)" -I{} sh -c \
  "$compiler -c -O0 -o /dev/null -Werror -Wno-psabi {} -idirafter /usr/include -idirafter /usr/include/$(gcc -dumpmachine)"
echo "$(wc -l <<< "$list") files of ${1:-server} compiled for ARM64"
