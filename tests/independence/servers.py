"""The native server in the configurations in which rows could affect each other."""

import json
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from colcast.loadtest.measure.meters import publishing
from colcast.server import ServerProcess

from .exported import Exported

_SPLIT = """
max_batch_size { value: 4096 }
batch_timeout_micros { value: 20000 }
max_enqueued_batches { value: 10000 }
num_batch_threads { value: 4 }
enable_large_batch_splitting { value: true }
max_execution_batch_size { value: 64 }
"""
_JOIN = """
max_batch_size { value: 4096 }
batch_timeout_micros { value: 2000 }
max_enqueued_batches { value: 10000 }
num_batch_threads { value: 1 }
pad_variable_length_inputs: true
"""

VARIANTS = {
    "default": [],
    "one worker": ["--num_workers=1"],
    "split": ["--num_workers=4", "--max_piece_milliseconds=0.02"],
    "exact": ["--graph_optimization=exact"],
    "late examples": ["--num_workers=1", "--example_transcoding=late"],
    "batching": [_JOIN],
    "batching, split": [_SPLIT],
}
"""Name -> flags, or a --batching_parameters_file's text."""


def serve(models: Sequence[Exported], variant: str, folder: Path, *more: str) -> ServerProcess:
    """A server of the models, not yet started; writes its configuration to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    entries = (
        f'config {{ name: "{model.model.name}" base_path: "{model.base_path}"'
        ' model_platform: "tensorflow" }'
        for model in models
    )
    (folder / "models.config").write_text(f"model_config_list {{ {' '.join(entries)} }}")
    mapped = "--map_tables_min_bytes=1"  # test models have small tables
    flags = [f"--model_config_file={folder}/models.config", mapped, *publishing(folder), *more]
    for flag in VARIANTS[variant]:
        if not flag.startswith("--"):
            (folder / "batching.config").write_text(flag)
            flag = f"--batching_parameters_file={folder}/batching.config"
            flags.append("--enable_batching")
        flags.append(flag)
    return ServerProcess(flags=flags)


def available(server: ServerProcess, name: str) -> list[str]:
    """The served versions of a model."""
    with urllib.request.urlopen(f"http://{server.rest_target}/v1/models/{name}") as answer:
        versions = json.load(answer)["model_version_status"]
    return [each["version"] for each in versions if each["state"] == "AVAILABLE"]
