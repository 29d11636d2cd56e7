"""Bad REST requests get the right HTTP code and the culprit's name; the next one is served."""

import gzip
import http.client
import json
import socket
from typing import Any

import pytest
from colcast.loadtest.measure.meters import ProcessMeter
from colcast.server import ServerProcess

MODEL = "/v1/models/target"
PREDICT = f"{MODEL}:predict"
GOOD = {
    "age": [30],
    "pair": [[1, 2], [3, 4], [5, 6]],
    "title": ["x", "y", "z"],
    "seen": [True, False, True],
}
ROW = {"age": 30, "pair": [1, 2], "title": "x", "seen": True}

Answer = tuple[int, Any]


def ask(server: ServerProcess, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
    """Sends a request; returns the HTTP code and the JSON."""
    connection = http.client.HTTPConnection(server.rest_target, timeout=60)
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.putrequest(method, path, skip_accept_encoding=True)
    for name, value in {"Content-Length": str(len(body)), **names}.items():
        connection.putheader(name, value)
    connection.endheaders(body)
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response.status, json.loads(content) if content else None


def predict(server: ServerProcess, body: object) -> Answer:
    return ask(server, "POST", PREDICT, json.dumps(body).encode())


def column(name: str, value: object) -> str:
    """The good request, with another value for one input."""
    return json.dumps({"inputs": {**GOOD, name: value}})


def rows(*instances: object) -> str:
    """A request in row format."""
    return json.dumps({"instances": instances})


def check_served(server: ServerProcess) -> None:
    """Checks that a good request is answered."""
    code, answer = predict(server, {"inputs": GOOD})
    assert code == 200, answer
    assert answer["outputs"]["score"] == [34.0, 37.0, 42.0]


BODY = json.dumps({"inputs": GOOD}).encode()
BOMB = gzip.compress(b" " * (64 << 20))
EXAMPLES = json.dumps({"examples": [{}, {"x": [[1]]}]}).encode()
# C++ tests beside server/rest/ have every kind of error; these are the ones that reach a client.
WRONG_BODIES: list[tuple[str, list[str]]] = [
    ("[" * 100_000, ["JSON Parse error"]),
    ('{"signature_name": "no", "inputs": 1}', ['"no"', "serving_default"]),
    ('{"inputs": {"age": [1]}}', ['" is missing and has no default']),
    (column("age", [2**63]), ['"age"[0]', "9223372036854775808"]),
    (column("pair", [[1, 2], [3]]), ['"pair"[1]', "a list of 1", "expected a list of 2"]),
    (column("title", ["x" * 100_000, 1]), ['"title"[1]']),
    (rows(ROW, {**ROW, "age": "x"}), ['instances[1]: input "age"', 'the string "x"']),
]
# Method, path, body, content encoding; code and words of the answer.
REFUSALS: list[tuple[str, str, bytes, str, int, list[str]]] = [
    *(("POST", PREDICT, body.encode(), "identity", 400, words) for body, words in WRONG_BODIES),
    ("POST", f"{MODEL}/versions/2:predict", BODY, "identity", 404, ["2"]),
    ("GET", "/v1/models/..%2f..%2fetc%2fpasswd", b"", "identity", 404, ["../../etc/passwd"]),
    ("POST", "/v1/models/target%00:predict", BODY, "identity", 404, ["target\0"]),
    ("GET", f"/{'x' * 20_000}", b"", "identity", 431, ["header"]),
    ("POST", f"{MODEL}:classify", EXAMPLES, "identity", 400, ['examples[1]: feature "x"[0]: a li']),
    ("POST", PREDICT, gzip.compress(BODY)[:-8] + bytes(8), "gzip", 400, ["not valid gzip"]),
    ("POST", PREDICT, BODY, "br", 415, ["br"]),
    ("POST", PREDICT, BOMB, "gzip", 413, ["more than 4194304"]),
    ("POST", PREDICT, b" " * (5 << 20), "identity", 413, ["over 4194304 bytes"]),
]


@pytest.mark.parametrize(
    ("method", "path", "body", "encoding", "code", "words"), REFUSALS, ids=range(len(REFUSALS))
)
def test_a_wrong_request_is_refused_by_name_and_the_next_one_served(
    rest_server: ServerProcess,
    method: str,
    path: str,
    body: bytes,
    encoding: str,
    code: int,
    words: list[str],
) -> None:
    got, answer = ask(rest_server, method, path, body, Content_Encoding=encoding)
    assert got == code, answer
    assert list(answer) == ["error"]
    assert all(word in answer["error"] for word in words), answer
    check_served(rest_server)


def test_a_client_that_hangs_up_midway_affects_no_other(rest_server: ServerProcess) -> None:
    host, port = rest_server.rest_target.split(":")
    head = b"POST /v1/models/target:predict HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"
    for length in range(0, len(head) + 100, 7):
        with socket.create_connection((host, int(port)), timeout=60) as connection:
            connection.sendall((head + b'{"inputs": ' + b" " * 100)[:length])
    check_served(rest_server)


def test_bad_requests_leave_no_memory_behind(rest_server: ServerProcess) -> None:
    bodies = [body.encode() for body, _ in WRONG_BODIES]
    bodies.append(b'{"inputs": {"pair": [' + b"[0,0]," * 500_000 + b"0]}}")

    def send_all() -> None:
        for body in bodies:
            assert ask(rest_server, "POST", PREDICT, body)[0] == 400
        assert ask(rest_server, "POST", PREDICT, BOMB, Content_Encoding="gzip")[0] == 413

    for _ in range(3):  # first the allocator's own arenas grow
        send_all()
    before = ProcessMeter(rest_server.pid).memory_bytes()
    for _ in range(10):
        send_all()
    assert ProcessMeter(rest_server.pid).memory_bytes() < before + (32 << 20)
    check_served(rest_server)
