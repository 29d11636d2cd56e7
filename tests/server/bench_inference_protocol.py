"""Server CPU per request by ModelInfer and by Predict, with the same columns, in turn.

    python -m tests.server.bench_inference_protocol [ROUNDS]

150 user and 60 item features, the user once; a model that does next to nothing, so that what is
compared is the protocol's own.
"""

import sys
import tempfile
from collections.abc import Iterator
from functools import partial

import grpc
import numpy as np
import tensorflow as tf
from colcast.client import encode_predict_request
from colcast.loadtest.variants import Variant, asking, measure_variants
from colcast.server import ServerProcess
from tritonclient.grpc import service_pb2
from tritonclient.utils import np_to_triton_dtype, serialize_byte_tensor

from .bench_rest import FEATURES, save_model

REQUESTS = 1000


def columns(candidates: int) -> dict[str, np.ndarray]:
    """Each user feature once, each item feature for every candidate."""
    found = {}
    for name, (dtype, value) in FEATURES.items():
        rows = 1 if name.startswith("user") else candidates
        of = object if dtype == tf.string else dtype.as_numpy_dtype
        found[name] = np.array([value.encode() if of is object else value] * rows, of)
    return found


def infer_request(sent: dict[str, np.ndarray]) -> bytes:
    """As Triton's client packs them: raw."""
    request = service_pb2.ModelInferRequest(model_name="echo")
    for name, values in sent.items():
        kind = np_to_triton_dtype(values.dtype)
        request.inputs.add(name=name, datatype=kind, shape=values.shape)
        raw = serialize_byte_tensor(values).item() if kind == "BYTES" else values.tobytes()
        request.raw_input_contents.append(raw)
    return request.SerializeToString()


def groups(server: ServerProcess, channel: grpc.Channel) -> Iterator[tuple[str, list[Variant]]]:
    """Both protocols at each number of candidates."""
    for candidates in (20, 100, 500):
        sent = columns(candidates)
        requests = {
            "tensorflow.serving.PredictionService/Predict": encode_predict_request(
                "echo", "serving_default", sent
            ),
            "inference.GRPCInferenceService/ModelInfer": infer_request(sent),
        }
        yield (
            f"N = {candidates}",
            [
                asking(
                    method.rpartition("/")[2],
                    partial(channel.unary_unary(f"/{method}"), request),
                    REQUESTS * 20 // candidates,
                    server.pid,
                    len(request),
                )
                for method, request in requests.items()
            ],
        )


def main(rounds: int) -> None:
    """Prints a table for each number of candidates."""
    with tempfile.TemporaryDirectory() as path:
        save_model(f"{path}/1")
        with ServerProcess("echo", path) as server, grpc.insecure_channel(server.target) as channel:
            measure_variants(groups(server, channel), rounds)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 9)
