"""Choice files for --graph_choices that nobody proved."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

from colcast.server import ServerProcess

_KEY = re.compile(r'this is "([^"]+)"')


def has_bfloat16() -> bool:
    """Whether the CPU has the instructions of "bfloat16 products"."""
    return "avx512_bf16" in Path("/proc/cpuinfo").read_text()


def write_choice(
    file: Path,
    base_path: Path,
    rewrites: Sequence[str],
    signatures: Sequence[str] = ("serving_default",),
    flags: Sequence[str] = (),
) -> Path:
    """A choice for the model on this machine."""
    with ServerProcess("any", base_path, ["--graph_optimization=fast", *flags]) as server:
        found = _KEY.search(server.log())
        assert found, server.log()
    file.parent.mkdir(exist_ok=True)
    choice = {"key": found[1], "rewrites": rewrites, "signatures": signatures}
    file.write_text(json.dumps(choice))
    return file
