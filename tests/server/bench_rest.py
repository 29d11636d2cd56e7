"""CPU time per REST request, before and behind a model that does next to nothing.

    python -m tests.server.bench_rest [OTHER_SERVER ...]

210 features and 100 candidates in each form REST has for them. Servers of other builds (paths of
colcast_model_server) are measured beside this one, in turn, so the ratios hold on a busy machine.
"""

import argparse
import http.client
import json
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import tensorflow as tf
from colcast.loadtest.variants import BYTES, CPU, asking, measure_variants
from colcast.server import ServerProcess, find_executable

CANDIDATES, USER_FEATURES, ITEM_FEATURES = 100, 150, 60
ROUNDS, CALLS = 5, 20
LEAST = replace(CPU, over=min)
KINDS: list[tuple[tf.DType, Any]] = [(tf.int64, 1234567), (tf.float32, 0.25), (tf.string, "value")]
NAMES = [f"user_{i}" for i in range(USER_FEATURES)] + [f"item_{i}" for i in range(ITEM_FEATURES)]
FEATURES = {name: KINDS[i % len(KINDS)] for i, name in enumerate(NAMES)}


def save_model(path: str) -> None:
    """Columns in, one of them out; tf.Examples in, their lengths out."""
    columnar = tf.function(
        lambda **columns: {"score": tf.identity(columns["item_1"])},
        input_signature=None,
    ).get_concrete_function(
        **{name: tf.TensorSpec([None], dtype, name) for name, (dtype, _) in FEATURES.items()}
    )
    examples = tf.function(
        lambda inputs: {"outputs": tf.cast(tf.strings.length(inputs), tf.float32)}
    ).get_concrete_function(tf.TensorSpec([None], tf.string, "inputs"))
    module = tf.Module()
    module.functions = [columnar, examples]
    tf.saved_model.save(module, path, {"serving_default": columnar, "regress": examples})


def bodies() -> dict[str, tuple[str, bytes]]:
    """Form -> method and body."""
    user = {name: value for name, (_, value) in FEATURES.items() if name.startswith("user")}
    item = {name: value for name, (_, value) in FEATURES.items() if name.startswith("item")}
    columns = {name: [value] for name, value in user.items()}
    columns |= {name: [value] * CANDIDATES for name, value in item.items()}
    rows = [user | item] * CANDIDATES
    forms = {
        "inputs, user once": ("predict", {"inputs": columns}),
        "instances": ("predict", {"instances": rows}),
        "examples": ("regress", {"signature_name": "regress", "examples": rows}),
        "examples, context": (
            "regress",
            {"signature_name": "regress", "context": user, "examples": [item] * CANDIDATES},
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


def main(argv: list[str] | None = None) -> int:
    """Prints a line per form and server."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("others", nargs="*", type=Path, help="colcast_model_server of other builds")
    executables = [find_executable(), *parser.parse_args(argv).others]
    with tempfile.TemporaryDirectory() as base_path, ExitStack() as running:
        save_model(f"{base_path}/1")
        flags = ["--rest_api_port=-1"]
        servers = [
            running.enter_context(ServerProcess("echo", base_path, flags, executable=path))
            for path in executables
        ]
        groups = [
            (
                form,
                [
                    asking(str(path), posting(it, method, body), CALLS, it.pid, len(body))
                    for path, it in zip(executables, servers, strict=True)
                ],
            )
            for form, (method, body) in bodies().items()
        ]
        measure_variants(groups, ROUNDS, (LEAST, BYTES))
    return 0


if __name__ == "__main__":
    sys.exit(main())
