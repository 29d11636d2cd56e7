"""Several users in one request: every candidate is scored with the user that row_to_user names."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from colcast.server import ServerProcess
from hypothesis import given, settings
from hypothesis import strategies as st

from ..models import dependent_model, stages_model

USER = ("age", "city", "history")
SIGNATURES = ("columnar", "columnar_late")


@pytest.fixture(scope="module", name="serve")
def _serve(
    tmp_path_factory: pytest.TempPathFactory, connect: Any, monitoring: list[str]
) -> Iterator[Callable[[str], Any]]:
    servers: dict[str, ServerProcess] = {}

    def stubs(kind: str) -> Any:
        if kind not in servers:
            base_path = tmp_path_factory.mktemp(f"several_{kind.split()[0]}")
            numbered = "unnumbered" not in kind
            stages_model.save(base_path / "1", users_per_run=kind.split()[0], numbered=numbered)
            off = ["--user_state_bytes=0", "--item_state_bytes=0"] if "off" in kind else []
            servers[kind] = ServerProcess("ranker", base_path, [*monitoring, *off])
            servers[kind].__enter__()
        found = connect(servers[kind].target)
        found.server = servers[kind]
        return found

    yield stubs
    for server in servers.values():
        server.__exit__(None, None, None)


@pytest.fixture(scope="module", name="stubs")
def _stubs(serve: Callable[[str], Any]) -> Any:
    return serve("many")


def request_of(seed: int, users: int, items: int, length: int = 3) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    return stages_model.inputs(random, users, items, length) | {
        "row_to_user": random.integers(0, users, items)
    }


def one_by_one(stubs: Any, inputs: dict[str, Any], signature: str) -> dict[str, Any]:
    """The same scores, asked for with a request per candidate."""
    answers = []
    for row, user in enumerate(inputs["row_to_user"]):
        single = {
            name: value[[user]] if name in USER else value[[row]]
            for name, value in inputs.items()
            if name != "row_to_user"
        }
        answers.append(stubs.predict(single, signature_name=signature))
    return {name: np.concatenate([answer[name] for answer in answers]) for name in answers[0]}


@pytest.mark.parametrize("kind", ["many", "one", "many off", "many unnumbered"])
@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 1000),
    users=st.integers(1, 6),
    items=st.integers(1, 20),
    length=st.integers(1, 3),
)
def test_scores_equal_those_of_a_request_per_user(serve, kind, seed, users, items, length):
    stubs = serve(kind)
    inputs = request_of(seed, users, items, length)
    late = stubs.predict(inputs, signature_name="columnar_late")
    exact = stubs.predict(inputs, signature_name="columnar")
    expected = one_by_one(stubs, inputs, "columnar")
    np.testing.assert_allclose(late["score"], expected["score"], rtol=1e-5)
    np.testing.assert_array_equal(late["tag"], expected["tag"])
    np.testing.assert_allclose(exact["score"], expected["score"], rtol=1e-6)


def test_columnar_gathers_to_the_last_bit(stubs):
    inputs = request_of(1, 4, 30)
    repeated = {
        name: value[inputs["row_to_user"]] if name in USER else value
        for name, value in inputs.items()
        if name != "row_to_user"
    }
    several = stubs.predict(inputs, signature_name="columnar")["score"]
    assert several.tolist() == stubs.predict(repeated, signature_name="columnar")["score"].tolist()


def test_where_candidates_interact_columnar_is_one_run_and_late_one_for_each_user(
    tmp_path: Path, connect: Any
):
    dependent_model.save(tmp_path / "1")
    random = np.random.default_rng(1)
    users, items = random.random(3, np.float32), random.random(20, np.float32)
    row_to_user = random.integers(0, 3, 20)
    several = {"user": users, "item": items, "row_to_user": row_to_user}
    with ServerProcess("ranker", tmp_path) as server:
        stubs = connect(server.target)

        def share(inputs: dict[str, Any], signature: str) -> Any:
            return stubs.predict(inputs, signature_name=signature, output_filter=["share"])["share"]

        repeated = stubs.predict(
            {"user": users[row_to_user], "item": items}, signature_name="columnar"
        )
        assert share(several, "columnar").tolist() == repeated["share"].tolist()
        late = share(several, "columnar_late")
        for user in range(3):
            of_user = row_to_user == user
            alone = share({"user": users[[user]], "item": items[of_user]}, "columnar_late")
            np.testing.assert_allclose(late[of_user], alone, rtol=1e-6)
        # An output without rows is the whole request's, and no user's.
        total = stubs.predict(several, signature_name="columnar")["total"]
        assert total == repeated["total"]
        with pytest.raises(grpc.RpcError) as error:
            stubs.predict(several, signature_name="columnar_late")
        assert error.value.code() == grpc.StatusCode.FAILED_PRECONDITION
        assert '"total"' in error.value.details()


def test_a_user_without_candidates_is_no_error(stubs):
    inputs = request_of(1, 3, 4) | {"row_to_user": np.array([2, 0, 0, 2])}
    assert stubs.predict(inputs, signature_name="columnar_late")["score"].shape == (4,)


@pytest.mark.parametrize("signature", SIGNATURES)
@pytest.mark.parametrize(
    ("row_to_user", "words"),
    [
        (np.array([0, 1, 3, 1]), ["row 2 is 3", "0 to 2"]),
        (np.array([0, -1, 0, 1]), ["row 1 is -1"]),
        (np.array([0, 1, 2, 2**63 - 1]), ["row 3", str(2**63 - 1)]),
        (np.array([-(2**63), 1, 2, 1]), ["row 0", str(-(2**63))]),
        (np.array([0, 1, 2]), ['"row_to_user" has 3 rows', "N = 4"]),
        (np.array([0, 1, 2, 0], np.int32), ['"row_to_user"', "int32", "int64"]),
        (np.array([[0, 1, 2, 0]]), ['"row_to_user"', "[1,4]"]),
        (["a", "b", "c", "d"], ['"row_to_user"', "string"]),
    ],
)
def test_a_row_to_user_that_names_no_user_is_refused(stubs, signature, row_to_user, words):
    inputs = request_of(1, 3, 4) | {"row_to_user": row_to_user}
    with pytest.raises(grpc.RpcError) as error:
        stubs.predict(inputs, signature_name=signature)
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert all(word in error.value.details() for word in words), error.value.details()


@pytest.mark.parametrize("signature", SIGNATURES)
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"age": np.array([1, 2])}, ['"age" has 2 rows', "N = 3"]),
        ({"id": np.array([1, 2])}, ['"id" has 2 rows', "N = 4"]),
        ({"other": [1]}, ['"other" is not in the signature']),
        ({"city": None}, ['"city" is missing']),
    ],
)
def test_errors_name_the_column(stubs, signature, wrong, words):
    inputs = request_of(1, 3, 4) | {"row_to_user": np.array([0, 1, 2, 2])} | wrong
    inputs = {name: value for name, value in inputs.items() if value is not None}
    with pytest.raises(grpc.RpcError) as error:
        stubs.predict(inputs, signature_name=signature)
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert all(word in error.value.details() for word in words), error.value.details()


class TestRest:
    """The same in JSON, by columns."""

    def post(self, stubs: Any, signature: str, inputs: dict[str, Any]) -> Any:
        plain = {name: np.asarray(value).tolist() for name, value in inputs.items()}
        body = json.dumps({"signature_name": signature, "inputs": plain}).encode()
        url = f"http://{stubs.server.rest_target}/v1/models/ranker:predict"
        with urllib.request.urlopen(urllib.request.Request(url, body), timeout=120) as response:
            return json.load(response)["outputs"]

    @pytest.mark.parametrize("signature", SIGNATURES)
    def test_scores_are_grpcs(self, stubs, signature):
        inputs = request_of(2, 3, 7)
        expected = stubs.predict(inputs, signature_name=signature)
        got = self.post(stubs, signature, inputs)
        np.testing.assert_allclose(got["score"], expected["score"], rtol=1e-6)
        assert got["tag"] == [tag.decode() for tag in expected["tag"]]

    def test_outside_the_users_is_refused(self, stubs):
        inputs = request_of(2, 3, 4) | {"row_to_user": [0, 1, 3, 0]}
        with pytest.raises(urllib.error.HTTPError) as error:
            self.post(stubs, "columnar_late", inputs)
        assert error.value.code == 400
        assert "row 2 is 3" in error.value.read().decode()

    def test_prefetch(self, stubs):
        inputs = stages_model.inputs(np.random.default_rng(9), 1, 1)
        users = {name: inputs[name] for name in USER}
        assert self.post(stubs, "columnar_late", users) == {"score": [], "tag": []}


def test_a_model_without_late_signature_has_no_such_input(
    tmp_path: Path, connect: Any, ranker_versions: Callable[..., None]
):
    ranker_versions(tmp_path / "1")
    with ServerProcess("ranker", tmp_path) as server, pytest.raises(grpc.RpcError) as error:
        connect(server.target).predict(
            {"user": [1.0], "item": [1.0], "user_name": ["a"], "item_name": ["b"]}
            | {"row_to_user": [0]}
        )
    assert "row_to_user" in error.value.details()
