"""CPU time per request, before and behind a model that does next to nothing: the protocol's own.

    python -m tests.server.bench_protocols [OTHER_SERVER ...]

150 user and 60 item features: 100 candidates in each form REST has for them, then Predict and
ModelInfer with the same columns, the user once. Servers of other builds (paths of
colcast_model_server) are measured beside this one, in turn, so the ratios hold on a busy machine.
"""

import argparse
import http.client
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import tensorflow as tf
from colcast.client import encode_predict_request
from colcast.loadtest.variants import BYTES, CPU, Variant, asking, measure_variants
from colcast.server import ServerProcess, find_executable
from tritonclient.grpc import service_pb2
from tritonclient.utils import np_to_triton_dtype, serialize_byte_tensor

from ..models.saving import save_version

CANDIDATES, USER_FEATURES, ITEM_FEATURES = 100, 150, 60
ROUNDS, REST_CALLS, GRPC_CANDIDATES = 9, 20, 20_000
LEAST = replace(CPU, over=min)
KINDS: list[tuple[tf.DType, Any]] = [(tf.int64, 1234567), (tf.float32, 0.25), (tf.string, "value")]
NAMES = [f"user_{i}" for i in range(USER_FEATURES)] + [f"item_{i}" for i in range(ITEM_FEATURES)]
FEATURES = {name: KINDS[i % len(KINDS)] for i, name in enumerate(NAMES)}

Groups = Iterator[tuple[str, list[Variant]]]
Servers = Sequence[tuple[str, ServerProcess]]


def save(folder: Path) -> None:
    """Columns in, one of them out; tf.Examples in, their lengths out."""
    columnar = tf.function(
        lambda **columns: {"score": tf.identity(columns["item_1"])}
    ).get_concrete_function(
        **{name: tf.TensorSpec([None], dtype, name) for name, (dtype, _) in FEATURES.items()}
    )
    examples = tf.function(
        lambda inputs: {"outputs": tf.cast(tf.strings.length(inputs), tf.float32)}
    ).get_concrete_function(tf.TensorSpec([None], tf.string, "inputs"))
    save_version(folder, tf.Module(), {"serving_default": columnar, "regress": examples})


def bodies() -> dict[str, tuple[str, bytes]]:
    """REST's forms -> method and body."""
    user = {name: value for name, (_, value) in FEATURES.items() if name.startswith("user")}
    item = {name: value for name, (_, value) in FEATURES.items() if name.startswith("item")}
    columns = {name: [value] for name, value in user.items()}
    columns |= {name: [value] * CANDIDATES for name, value in item.items()}
    rows, regress = [user | item] * CANDIDATES, {"signature_name": "regress"}
    forms = {
        "inputs, user once": ("predict", {"inputs": columns}),
        "instances": ("predict", {"instances": rows}),
        "examples": ("regress", regress | {"examples": rows}),
        "examples, context": (
            "regress",
            regress | {"context": user, "examples": [item] * CANDIDATES},
        ),
    }
    return {form: (method, json.dumps(body).encode()) for form, (method, body) in forms.items()}


def posting(server: ServerProcess, method: str, body: bytes) -> Callable[[], None]:
    """Sends a body over one connection."""
    connection = http.client.HTTPConnection(server.rest_target, timeout=60)

    def ask() -> None:
        connection.request("POST", f"/v1/models/echo:{method}", body)
        response = connection.getresponse()
        content = response.read()
        if response.status != 200:
            raise SystemExit(content.decode())

    return ask


def over_rest(servers: Servers) -> Groups:
    """Every form to every server."""
    for form, (method, body) in bodies().items():
        yield (
            form,
            [
                asking(title, posting(it, method, body), REST_CALLS, it.pid, len(body))
                for title, it in servers
            ],
        )


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


def over_grpc(servers: Servers, channels: Sequence[grpc.Channel]) -> Groups:
    """Both protocols to every server, at each number of candidates."""
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
                    f"{method.rpartition('/')[2]}, {title}",
                    partial(channel.unary_unary(f"/{method}"), request),
                    GRPC_CANDIDATES // candidates,
                    server.pid,
                    len(request),
                )
                for (title, server), channel in zip(servers, channels, strict=True)
                for method, request in requests.items()
            ],
        )


def main() -> None:
    """Prints a line per form, protocol and server."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("others", nargs="*", type=Path, help="colcast_model_server of other builds")
    builds = {"this one": find_executable()} | {str(it): it for it in parser.parse_args().others}
    with tempfile.TemporaryDirectory() as base_path, ExitStack() as running:
        save(Path(base_path, "1"))
        flags = ["--rest_api_port=-1"]
        servers = [
            (title, running.enter_context(ServerProcess("echo", base_path, flags, executable=path)))
            for title, path in builds.items()
        ]
        channels = [
            running.enter_context(grpc.insecure_channel(server.target)) for _, server in servers
        ]
        measure_variants(over_rest(servers), ROUNDS, (LEAST, BYTES))
        measure_variants(over_grpc(servers, channels), ROUNDS, (LEAST, BYTES))


if __name__ == "__main__":
    main()
