"""The cost of importing the client, and the bytes in its documents."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from colcast.client import encode_predict_request


def run(code: str) -> str:
    """Runs code in a fresh interpreter; returns its output."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


MEMORY = """
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 2**20
import grpc, numpy
before = resident()
import colcast.client
print(resident() - before)
"""


def test_import_takes_under_10_mb_beside_numpy_and_grpc():
    assert float(run(MEMORY)) < 10


def test_import_brings_numpy_and_grpc_and_nothing_heavier():
    names = run("import sys, colcast.client; print(*{m.partition('.')[0] for m in sys.modules})")
    loaded = set(names.split())
    assert {"numpy", "grpc"} <= loaded
    assert loaded.isdisjoint({"tensorflow", "google", "pandas", "polars", "pyarrow", "keras"})


USE = """
from colcast.client import RankingClient, encode_predict_request
from colcast.client.messages import parse
import numpy as np
parse("Example", b"")
assert encode_predict_request("m", "s", {"x": np.arange(3)})
"""
TENSORFLOW = """
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc
assert tf.train.Example().SerializeToString() == b""
"""


@pytest.mark.parametrize("code", [USE + TENSORFLOW, TENSORFLOW + USE], ids=["before", "after"])
def test_tensorflow_may_be_imported_before_or_after(code: str):
    assert run(code + "print('fine')") == "fine\n"


DOCS = Path(__file__).parents[2] / "docs"


def test_the_annotated_input_is_what_we_send():
    """The first listing of wire.md."""
    block = re.search(r"```\n(.*?)```", (DOCS / "wire.md").read_text(), re.DOTALL)
    assert block
    lines = re.findall(r"^\s*((?:[0-9a-f]{2} ?)+)(?=\s|$)", block[1], re.MULTILINE)
    sent = encode_predict_request("movies", "columnar", {"age": np.array([31])})
    assert sent.endswith(bytes.fromhex("".join(lines)))
