#!/usr/bin/env bash
# Compiles the executable, which needs no TensorFlow, for ARM64 with Debian's cross compiler. Links
# nothing. Uses the libraries' headers of this machine, because they are the same for both
# architectures.
#   scripts/check_arm64.sh [FOLDER]   # a folder of server/; by default all of them
set -euo pipefail
cd "$(dirname "$0")/.."
compiler=aarch64-linux-gnu-g++
if ! command -v $compiler >/dev/null; then
  echo "not compiled for ARM64: no $compiler here (apt-get install g++-aarch64-linux-gnu)"
  exit 0
fi
# Prints CMake's compile commands, one per line: flags and include folders, then the source. Leaves
# out tests and files that use TensorFlow's headers.
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
