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
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import tensorflow as tf
from colcast.loadtest.ways import Way, build, compare_ways
from colcast.server import ServerProcess
from colcast.server._executable import find_executable
from rich.console import Console
from rich.table import Table

CANDIDATES, USER_FEATURES, ITEM_FEATURES = 100, 150, 60
ROUNDS, REQUESTS = 5, 20
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


def posting(path: Path, server: ServerProcess, method: str, body: bytes) -> Way:
    """Sends a body over one connection."""
    connection = http.client.HTTPConnection(server.rest_target, timeout=60)

    def ask() -> None:
        for _ in range(REQUESTS):
            connection.request("POST", f"/v1/models/echo:{method}", body)
            response = connection.getresponse()
            content = response.read()
            if response.status != 200:
                raise SystemExit(content.decode())

    return Way(str(path.parent), server, ask, REQUESTS)


def main(argv: list[str] | None = None) -> int:
    """Prints the least CPU time of several rounds per form and server."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("others", nargs="*", type=Path, help="colcast_model_server of other builds")
    executables = [find_executable(), *parser.parse_args(argv).others]
    table = Table("body", "MB", *(f"ms, {path.parent}" for path in executables))
    with tempfile.TemporaryDirectory() as base_path, ExitStack() as running:
        save_model(f"{base_path}/1")
        servers = []
        for path in executables:
            with build(path):
                servers.append(ServerProcess("echo", base_path, ["--rest_api_port=-1"]))
            running.enter_context(servers[-1])
        for form, (method, body) in bodies().items():
            ways = [
                posting(path, server, method, body)
                for path, server in zip(executables, servers, strict=True)
            ]
            least = [f"{of_one.min():.2f}" for of_one in compare_ways(ways, ROUNDS)]
            table.add_row(form, f"{len(body) / 1e6:.2f}", *least)
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
