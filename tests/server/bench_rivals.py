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
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
from colcast.client import RankingClient
from colcast.loadtest.formats import NO_STORES, encode
from colcast.loadtest.overhead import engine_benchmark
from colcast.loadtest.variants import zoo_rows
from colcast.loadtest.ways import Way, print_ways
from colcast.server import ServerProcess
from colcast.zoo.columnar import columnar
from colcast.zoo.registry import MODELS
from tensorflow import make_ndarray
from tensorflow_serving.apis.predict_pb2 import PredictRequest

RIVAL = Path(__file__).with_name("rival.py")
CALLS = 100
ONEDNN = {"TF_ENABLE_ONEDNN_OPTS": "1"}
TENSORFLOWS = {
    "oneDNN on": ONEDNN,
    "oneDNN off": {"TF_ENABLE_ONEDNN_OPTS": "0"},
    "oneDNN, BF16": {**ONEDNN, "TF_SET_ONEDNN_FPMATH_MODE": "BF16"},
}
ZENTF = {"TF_ENABLE_ZENDNN_OPTS": "1", "TF_ENABLE_ONEDNN_OPTS": "0"}


@contextmanager
def way(title: str, command: Sequence[Any], line: str, changes: dict[str, str]) -> Iterator[Way]:
    """A process that answers `line` after so many runs, as something to compare."""
    pipe = subprocess.PIPE
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **changes}
    with subprocess.Popen(
        list(map(str, command)), stdin=pipe, stdout=pipe, text=True, env=environment
    ) as process:
        assert process.stdin
        assert process.stdout
        stdin, stdout = process.stdin, process.stdout

        def ask() -> None:
            print(line, file=stdin, flush=True)
            assert stdout.readline(), f"{title}: ended"

        yield Way(title, SimpleNamespace(pid=process.pid), ask, CALLS)
        process.kill()


def request(name: str, base_path: Path, size: int) -> bytes:
    """A PredictRequest with the user repeated."""
    with (
        ServerProcess(name, base_path, flags=list(NO_STORES)) as server,
        RankingClient(server.target, name) as client,
    ):
        return encode(client, "repeated", zoo_rows(name)(size, 1)[0]).payload


def converted(python: Path, version: Path, folder: Path) -> Path:
    """The signature as ONNX."""
    made = folder / "model.onnx"
    options = ["--saved-model", version, "--signature_def", "columnar", "--tag", "serve"]
    command = [python, "-m", "tf2onnx.convert", *options, "--opset", "17", "--output", made]
    subprocess.run(list(map(str, command)), check=True, capture_output=True)
    return made


def main() -> None:
    """Prints a table for every number of candidates."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="dlrm_rmc3")
    parser.add_argument("--sizes", type=lambda text: text.split(","), default=(20, 100, 500))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--onnx", type=Path, default=Path(".venv-onnx/bin/python"))
    parser.add_argument("--zentf", type=Path, default=Path(".venv-zentf/bin/python"))
    arguments = parser.parse_args()
    base_path = columnar(MODELS[arguments.model].saved_model(), late=True)
    version = next(base_path.glob("[0-9]*"))
    with TemporaryDirectory() as made:
        folder = Path(made)
        onnx = converted(arguments.onnx, version, folder) if arguments.onnx.exists() else None
        for size in map(int, arguments.sizes):
            payload = request(arguments.model, base_path, size)
            (folder / "request").write_bytes(payload)
            inputs = PredictRequest.FromString(payload).inputs
            columns = {name: make_ndarray(value) for name, value in inputs.items()}
            np.savez(folder / "columns.npz", **columns)
            with ExitStack() as running:

                def add(title: str, command: Sequence[Any], line: str, **changes: str) -> Way:
                    return running.enter_context(way(title, command, line, changes))

                given, number = (version, folder / "columns.npz"), str(CALLS)
                ways = [
                    add(title, (sys.executable, RIVAL, "tensorflow", *given), number, **changes)
                    for title, changes in TENSORFLOWS.items()
                ]
                if arguments.zentf.exists():
                    command = (arguments.zentf, RIVAL, "tensorflow", *given)
                    ways.append(add("zentf", command, number, **ZENTF))
                if onnx:
                    command = (arguments.onnx, RIVAL, "onnx", onnx, given[1])
                    ways.append(add("ONNX Runtime", command, number))
                for mode in ("off", "exact", "fast"):
                    command = (engine_benchmark(), "server", version, mode)
                    line = f"{CALLS} {folder / 'request'}"
                    ways.append(add(f"this server, {mode}", command, line))
                print_ways(f"{arguments.model}, N = {size}", ways, arguments.rounds)


if __name__ == "__main__":
    main()
