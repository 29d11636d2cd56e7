"""Requests by callers that a header names, to the ranker of conftest.py and to other models."""

import http.client
import json
from collections.abc import Callable
from typing import Any

import grpc
import numpy as np
import pytest
from colcast.server import ServerProcess

HEADER = "x-colcast-caller"
FLAG = f"--caller_header={HEADER}"
NEVER = "max_rows_per_second: 0.001"  # comes another row in the test's time


def by(caller: str) -> tuple[tuple[str, str], ...]:
    """A call's metadata."""
    return ((HEADER, caller),)


def refusal(call: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    """The message of a call that a quota refuses."""
    with pytest.raises(grpc.RpcError) as refused:
        call(*args, timeout=120, **kwargs)
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    return str(refused.value.details())


def post(server: ServerProcess, path: str, body: Any, caller: str = "") -> tuple[int, str]:
    """The status and the answer, or its error."""
    host, port = server.rest_target.split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=120)
    headers = {"X-Colcast-Caller": caller} if caller else {}
    connection.request("POST", f"/v1/models/{path}", json.dumps(body), headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, json.loads(text)["error"] if answer.status >= 400 else text


def ranked(rows: int) -> dict[str, Any]:
    """Inputs of so many rows."""
    items = {"item": np.zeros(rows, np.float32), "item_name": ["x"] * rows}
    return {"user": np.float32([1]), "user_name": ["ann"], **items}


def rest(inputs: dict[str, Any]) -> dict[str, Any]:
    """Inputs as JSON has them."""
    return {name: np.asarray(value).tolist() for name, value in inputs.items()}
