"""CPU of one graph by TensorFlow with oneDNN on, off and in BF16, by others, and by this server.

    python -m tests.server.bench_rivals [--model dlrm_rmc3] [--sizes 20,100,500] [--rounds 7]
        [--onnx .venv-onnx/bin/python] [--zentf .venv-zentf/bin/python]

A model of numbers, `columnar`, the user repeated, one thread, tensors that are ready. The graph
runs in processes that take turns; Python asks all but the server's, which engine_benchmark runs.
Rivals in other environments are left out without them:

    python -m venv .venv-onnx
    .venv-onnx/bin/pip install tensorflow-cpu==2.15.1 tf2onnx==1.16.1 onnxruntime==1.26.0
    python -m venv .venv-zentf
    .venv-zentf/bin/pip install tensorflow-cpu==2.20.0 zentf==2.20.0.0
"""

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from colcast.loadtest.answering import Answering
from colcast.loadtest.formats import NO_STATES
from colcast.loadtest.overhead import engine_benchmark
from colcast.loadtest.variants import CPU, Variant, asking, measure_variants
from colcast.loadtest.zoo_models import exported, zoo_payloads
from colcast.server import ServerProcess
from tensorflow import make_ndarray
from tensorflow_serving.apis.predict_pb2 import PredictRequest

RIVAL = Path(__file__).with_name("rival.py")
CALLS = 100
PER_RUN = replace(CPU, of=lambda it: it.server_cpu_ms / CALLS)
ONEDNN = {"TF_ENABLE_ONEDNN_OPTS": "1"}
TENSORFLOWS = {
    "oneDNN on": ONEDNN,
    "oneDNN off": {"TF_ENABLE_ONEDNN_OPTS": "0"},
    "oneDNN, BF16": {**ONEDNN, "TF_SET_ONEDNN_FPMATH_MODE": "BF16"},
}
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3"}
ZENTF = {"TF_ENABLE_ZENDNN_OPTS": "1", "TF_ENABLE_ONEDNN_OPTS": "0"}


def converted(python: Path, version: Path, folder: Path) -> Path:
    """The signature as ONNX."""
    made = folder / "model.onnx"
    options = ["--saved-model", version, "--signature_def", "columnar", "--tag", "serve"]
    command = [python, "-m", "tf2onnx.convert", *options, "--opset", "17", "--output", made]
    subprocess.run(list(map(str, command)), check=True, capture_output=True)
    return made


def rivals(arguments: argparse.Namespace, folder: Path) -> Iterator[tuple[str, list[Variant]]]:
    """All that are there, at each number of candidates."""
    name, base_path = arguments.model, exported(arguments.model)
    version = next(base_path.glob("[0-9]*"))
    onnx = converted(arguments.onnx, version, folder) if arguments.onnx.exists() else None
    for size in map(int, arguments.sizes):
        with ServerProcess(name, base_path, flags=NO_STATES) as server:
            (payload,) = zoo_payloads(server.target, name, "repeated", size, 1)
        (folder / "request").write_bytes(payload)
        inputs = PredictRequest.FromString(payload).inputs
        columns = folder / "columns.npz"
        np.savez(columns, **{feature: make_ndarray(value) for feature, value in inputs.items()})
        number, given = (CALLS,), (RIVAL, "tensorflow", version, columns)
        commands: list[tuple[str, Sequence[Any], Sequence[Any], dict[str, str]]] = [
            (title, number, (sys.executable, *given), changes)
            for title, changes in TENSORFLOWS.items()
        ]
        if arguments.zentf.exists():
            commands.append(("zentf", number, (arguments.zentf, *given), ZENTF))
        if onnx:
            command = (arguments.onnx, RIVAL, "onnx", onnx, columns)
            commands.append(("ONNX Runtime", number, command, {}))
        for mode in ("off", "exact", "fast"):
            command = (engine_benchmark(), "server", version, mode)
            commands.append((f"this server, {mode}", (CALLS, folder / "request"), command, {}))
        with ExitStack() as stack:
            yield (
                f"{name}, N = {size}",
                [
                    asking(title, partial(process.ask, *words), 1, process.pid)
                    for title, words, process in (
                        (title, words, stack.enter_context(Answering(command, QUIET | changes)))
                        for title, words, command, changes in commands
                    )
                ],
            )


def main() -> None:
    """Prints a line for each rival and number of candidates."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="dlrm_rmc3")
    parser.add_argument("--sizes", type=lambda text: text.split(","), default=(20, 100, 500))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--onnx", type=Path, default=Path(".venv-onnx/bin/python"))
    parser.add_argument("--zentf", type=Path, default=Path(".venv-zentf/bin/python"))
    with TemporaryDirectory() as folder:
        arguments = parser.parse_args()
        measure_variants(rivals(arguments, Path(folder)), arguments.rounds, [PER_RUN])


if __name__ == "__main__":
    main()
