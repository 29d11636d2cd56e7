"""What importing the client costs, and whom it does not disturb; each in a fresh process."""

import subprocess
import sys

import pytest


def run(code: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


MEMORY = """
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 2**20
before = resident()
import colcast.client
print(resident() - before)
"""


def test_import_takes_under_40_mb() -> None:
    run(MEMORY)  # compiles what is not compiled yet
    assert float(run(MEMORY)) < 40


def test_import_brings_numpy_and_grpc_and_nothing_heavier() -> None:
    names = run("import sys, colcast.client; print(*{m.partition('.')[0] for m in sys.modules})")
    loaded = set(names.split())
    assert {"numpy", "grpc"} <= loaded
    assert loaded.isdisjoint({"tensorflow", "google", "pandas", "polars", "pyarrow", "keras"})


USE = """
from colcast.client import RankingClient, encode_predict_request
from colcast.client.columns._examples import messages
import numpy as np
messages()
assert encode_predict_request("m", "s", {"x": np.arange(3)})
"""
TENSORFLOW = """
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc
assert tf.train.Example().SerializeToString() == b""
"""


@pytest.mark.parametrize("code", [USE + TENSORFLOW, TENSORFLOW + USE], ids=["before", "after"])
def test_tensorflow_may_be_imported_before_or_after(code: str) -> None:
    assert run(code + "print('fine')") == "fine\n"
