"""Choice files for --graph_choices that nobody proved."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from .servers import Stubs

_KEY = re.compile(r'this is "([^"]+)"')


def has_bfloat16() -> bool:
    """Whether the CPU has the instructions of "bfloat16 products"."""
    return "avx512_bf16" in Path("/proc/cpuinfo").read_text()


def log_of(stubs: Stubs) -> str:
    """What the server has said of the model."""
    lines = stubs.server.log().splitlines()
    return "\n".join(line for line in lines if f'"{stubs.model}"' in line)


def write_choice(
    folder: Path,
    serve_fast: Callable[[Path], Stubs],
    base_path: Path,
    rewrites: Sequence[str],
) -> Path:
    """A choice for the model on this machine, in the folder of --graph_choices."""
    log = log_of(serve_fast(base_path))
    found = _KEY.search(log)
    assert found, log
    file = folder / f"{base_path.name}.json"
    choice = {"key": found[1], "rewrites": rewrites, "signatures": ["serving_default"]}
    file.write_text(json.dumps(choice))
    return file
