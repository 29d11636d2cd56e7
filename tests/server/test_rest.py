"""REST gives gRPC's answers, in rows and in columns, as docs/wire.md describes."""

import gzip
import http.client
import json
import math
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from colcast.server import ServerProcess
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ..waiting import wait_until
from .servers import Stubs

DTYPES = {
    "float": np.float32,
    "double": np.float64,
    "int8": np.int8,
    "int16": np.int16,
    "int32": np.int32,
    "int64": np.int64,
    "uint8": np.uint8,
    "uint32": np.uint32,
    "uint64": np.uint64,
    "bool": np.bool_,
}


class Echo(tf.Module):
    """A model that has one signature per dtype and rank; each returns its input."""

    def signatures(self) -> dict[str, Any]:
        """Signatures for scalars, vectors and rows of vectors; text and bytes; a user and items."""

        def echo(x: tf.Tensor) -> dict[str, tf.Tensor]:
            return {"y": tf.identity(x)}

        def pair(user: tf.Tensor, item: tf.Tensor) -> dict[str, tf.Tensor]:
            return {"score": user * item, "rows": tf.shape(user)}

        def text(x: tf.Tensor) -> dict[str, tf.Tensor]:
            return {"text": x, "raw_bytes": x}

        made = {}
        for name, dtype in DTYPES.items():
            for rank, shape in enumerate([[], [None], [None, None], [None, None, None]]):
                spec = tf.TensorSpec(shape, dtype, "x")
                made[f"{name}{rank}"] = tf.function(echo, [spec]).get_concrete_function()
        items = [tf.TensorSpec([None], tf.float32, n) for n in ("user", "item")]
        made["pair"] = tf.function(pair, items).get_concrete_function()
        strings = [tf.TensorSpec([None], tf.string, "x")]
        made["text"] = tf.function(text, strings).get_concrete_function()
        return made


@pytest.fixture(scope="module")
def base_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("echo")
    module = Echo()
    tf.saved_model.save(module, str(path / "1"), signatures=module.signatures())
    return path


@pytest.fixture(scope="module")
def stubs(base_path: Path, serve: Any) -> Stubs:
    return serve(base_path)


class Rest:
    """One persistent connection for requests to a model."""

    def __init__(self, stubs: Stubs) -> None:
        self.model = f"/v1/models/{stubs.model}"
        self.connection = http.client.HTTPConnection(stubs.server.rest_target, timeout=60)

    def ask(
        self, method: str, path: str, body: bytes | str = b"", **headers: str
    ) -> tuple[http.client.HTTPResponse, bytes]:
        """Sends a request and returns the answer; "" and ":method" extend the model's path."""
        path = self.model + path if path[:1] in ("", ":") else path
        self.connection.request(
            method, path, body, {name.replace("_", "-"): v for name, v in headers.items()}
        )
        response = self.connection.getresponse()
        return response, response.read()

    def predict(self, signature: str, body: dict[str, Any]) -> Any:
        """The outputs or predictions; fails with the server's message if the request fails."""
        text = json.dumps({"signature_name": signature, **body})
        response, content = self.ask("POST", ":predict", text)
        answer = json.loads(content)
        assert response.status == 200, answer
        return answer["outputs" if "inputs" in body else "predictions"]


@pytest.fixture(scope="module")
def rest(stubs: Stubs) -> Iterator[Rest]:
    client = Rest(stubs)
    yield client
    client.connection.close()


def some_values(dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Random values; any bit pattern may occur in numbers."""
    size = np.dtype(dtype).itemsize * math.prod(shape)
    if dtype is np.bool_:
        return np.random.default_rng(7).random(shape) < 0.5
    raw = np.random.default_rng(7).bytes(size)
    return np.frombuffer(raw, dtype).reshape(shape).copy()


@pytest.mark.parametrize("name", DTYPES)
def test_rest_answers_what_grpc_answers(rest: Rest, stubs: Stubs, name: str) -> None:
    for shape in [(), (3,), (2, 3), (4, 1, 2)]:
        x, signature = some_values(DTYPES[name], shape), f"{name}{len(shape)}"
        expected = stubs.predict({"x": x}, signature_name=signature)["y"]
        bodies = [{"inputs": x.tolist()}, {"inputs": {"x": x.tolist()}}]
        if shape:
            bodies += [{"instances": [{"x": row} for row in x.tolist()]}, {"instances": x.tolist()}]
        for body in bodies:
            answered = np.array(rest.predict(signature, body), DTYPES[name])
            np.testing.assert_array_equal(answered, expected)


SETTINGS = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@SETTINGS
@given(st.lists(st.floats(width=32), min_size=1))
def test_every_float_comes_back_in_few_digits(rest: Rest, values: list[float]) -> None:
    back = rest.predict("float1", {"instances": values})
    np.testing.assert_array_equal(np.float32(back), np.float32(values))
    assert all(len(repr(value)) <= 24 for value in back)


def test_large_bodies_and_compressed_ones_go_both_ways(rest: Rest) -> None:
    values = list(range(200_000))
    body = json.dumps({"signature_name": "int641", "inputs": values}).encode()
    for request, headers in [
        (body, {}),
        (gzip.compress(body), {"Content_Encoding": "gzip"}),
        (body, {"Accept_Encoding": "gzip"}),
    ]:
        response, content = rest.ask("POST", ":predict", request, **headers)
        assert response.status == 200
        compressed = response.getheader("Content-Encoding") == "gzip"
        assert compressed == ("Accept_Encoding" in headers)
        content = gzip.decompress(content) if compressed else content
        assert json.loads(content)["outputs"] == values


def test_pages_of_other_origins_may_call(rest: Rest) -> None:
    for method, path in [("OPTIONS", ":predict"), ("GET", ""), ("POST", ":predict")]:
        response, _ = rest.ask(method, path)
        assert response.getheader("Access-Control-Allow-Origin") == "*"
        assert response.getheader("Access-Control-Allow-Methods") == "POST, GET"
        assert response.getheader("Access-Control-Allow-Headers") == "Content-Type"
    assert rest.ask("OPTIONS", ":predict")[0].status == 200


def test_without_cors_headers_a_request_that_waits_too_long_is_answered_504(tmp_path: Path) -> None:
    class Slow(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.int32, "n")])
        def run(self, n: tf.Tensor) -> dict[str, tf.Tensor]:
            """Returns n[0], after counting to it."""
            return {"y": tf.while_loop(lambda i: i < n[0], lambda i: [i + 1], [0])[0]}

    module = Slow()
    tf.saved_model.save(module, str(tmp_path / "1"), signatures=module.run)
    flags = ["--rest_api_port=-1", "--num_workers=1", "--rest_api_timeout_in_ms=1"]
    body = json.dumps({"inputs": [50_000]})
    with ServerProcess("slow", tmp_path, flags) as server:
        slow = Stubs(server.target, model="slow")
        slow.server = server
        first, second = Rest(slow), Rest(slow)
        for method, path in [("GET", ""), ("OPTIONS", ":predict")]:
            response, _ = first.ask(method, path)
            assert response.status == 200
            assert response.getheader("Access-Control-Allow-Origin") is None
        assert response.getheader("Allow") == "GET, POST, OPTIONS"
        codes = set()

        def some_waited_too_long() -> bool:
            for client in (first, second):
                client.connection.request("POST", "/v1/models/slow:predict", body)
            for client in (first, second):
                response = client.connection.getresponse()
                response.read()
                codes.add(response.status)
            return 504 in codes

        wait_until(some_waited_too_long)
    assert codes <= {200, 504}


PAGE = (Path(__file__).parents[2] / "docs" / "wire.md").read_text()
BLOCKS = re.findall(r"^\$ (.*)\n((?:(?!\$ |```).*\n)*)", PAGE, re.MULTILINE)
CALLS = [(command, answer) for command, answer in BLOCKS if "curl" in command]
assert len(CALLS) == 3


class Movies(tf.Module):
    """The model of docs/wire.md."""

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.float32, "age"),
            tf.TensorSpec([None], tf.int64, "year"),
            tf.TensorSpec([None], tf.string, "title"),
        ]
    )
    def rank(self, age: tf.Tensor, year: tf.Tensor, title: tf.Tensor) -> dict[str, tf.Tensor]:
        """Scores movies; younger users get newer ones first."""
        return {"score": tf.cast(year, tf.float32) - age, "name": title + "!"}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def halve(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        """Halves its only input."""
        return {"y": x / 2}


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory, serve: Any) -> str:
    path = tmp_path_factory.mktemp("movies")
    module = Movies()
    signatures = {"serving_default": module.rank, "halve": module.halve}
    tf.saved_model.save(module, str(path / "1"), signatures=signatures)
    return serve(path, name="movies").server.rest_target


@pytest.mark.parametrize(("command", "answer"), CALLS)
def test_a_command_answers_what_the_page_shows(target: str, command: str, answer: str) -> None:
    silent = command.replace("curl", "curl -sS").replace("localhost:8501", target)
    ran = subprocess.run(silent, shell=True, capture_output=True, text=True, timeout=60)
    assert ran.stdout.rstrip() == answer.rstrip(), ran.stderr
