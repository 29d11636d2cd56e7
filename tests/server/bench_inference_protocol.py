"""Server CPU per request by ModelInfer and by Predict, with the same columns, in turn.

    python -m tests.server.bench_inference_protocol [ROUNDS]

150 user and 60 item features, the user once; a model that does next to nothing, so that what is
compared is the protocol's own.
"""

import sys
import tempfile
from typing import Any

import grpc
import numpy as np
import tensorflow as tf
from colcast.loadtest.process import ProcessMeter
from colcast.loadtest.turns import in_turn
from colcast.server import ServerProcess
from tensorflow_serving.apis import predict_pb2
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


def predict_request(sent: dict[str, np.ndarray]) -> bytes:
    """As the client library packs numbers: in tensor_content."""
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "echo"
    for name, values in sent.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(values))
    return request.SerializeToString()


def infer_request(sent: dict[str, np.ndarray]) -> bytes:
    """As Triton's client packs them: raw."""
    request = service_pb2.ModelInferRequest(model_name="echo")
    for name, values in sent.items():
        kind = np_to_triton_dtype(values.dtype)
        request.inputs.add(name=name, datatype=kind, shape=values.shape)
        raw = serialize_byte_tensor(values).item() if kind == "BYTES" else values.tobytes()
        request.raw_input_contents.append(raw)
    return request.SerializeToString()


def main(rounds: int) -> None:
    """Prints a line for each number of candidates: medians, and the median of the ratios."""
    with tempfile.TemporaryDirectory() as path:
        save_model(f"{path}/1")
        with ServerProcess("echo", path) as server, grpc.insecure_channel(server.target) as channel:
            meter = ProcessMeter(server.pid)
            calls = [
                channel.unary_unary("/tensorflow.serving.PredictionService/Predict"),
                channel.unary_unary("/inference.GRPCInferenceService/ModelInfer"),
            ]
            for candidates in (20, 100, 500):
                sent = columns(candidates)
                asked = list(zip(calls, (predict_request(sent), infer_request(sent)), strict=True))

                def cpu(one: tuple[Any, bytes], _: int, of: int = candidates) -> float:
                    call, request = one
                    before = meter.cpu_seconds()
                    for _ in range(REQUESTS * 20 // of):
                        call(request)
                    return (meter.cpu_seconds() - before) / (REQUESTS * 20 // of) * 1e6

                predict, infer = in_turn(asked, cpu, rounds)
                ratio = np.median(np.array(infer) / np.array(predict))
                print(
                    f"N = {candidates:3}: Predict {np.median(predict):6.1f} us, {len(asked[0][1])} "
                    f"bytes; ModelInfer {np.median(infer):6.1f} us, {len(asked[1][1])} bytes; "
                    f"ratio {ratio:.3f}"
                )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 9)
