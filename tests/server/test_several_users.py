"""Several users in one request: row_to_user gives each candidate its user."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import grpc
import numpy as np
import pytest
from colcast.client import RankingClient
from hypothesis import given, settings
from hypothesis import strategies as st

from ..models import dependent_model, stages_model
from .metrics_page import states_computed
from .servers import NOTHING_KEPT, ONE_WORKER, Stubs

USER = ("age", "city", "history")
SIGNATURES = ("columnar", "columnar_late")


KINDS = {
    "many": {},
    "one": {"users_per_run": "one"},
    "unnumbered": {"numbered": False},
}


@pytest.fixture(scope="module", name="serve")
def _serve(tmp_path_factory: pytest.TempPathFactory, serve: Any) -> Callable[..., Stubs]:
    """A function that serves one kind of model and returns its stubs."""
    folder = tmp_path_factory.mktemp("several")
    for kind, options in KINDS.items():
        stages_model.save(folder / kind / "1", **options)
    dependent_model.save(folder / "dependent" / "1")
    return cache(lambda kind, *flags: serve(folder / kind, *flags))


@pytest.fixture(scope="module", name="stubs")
def _stubs(serve: Callable[..., Any]) -> Any:
    return serve("many")


def request_of(seed: int, users: int, items: int, length: int = 3) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    return stages_model.inputs(random, users, items, length) | {
        "row_to_user": random.integers(0, users, items)
    }


def one_by_one(stubs: Any, inputs: dict[str, Any], signature: str) -> dict[str, Any]:
    """The outputs from one request per candidate."""
    answers = []
    for row, user in enumerate(inputs["row_to_user"]):
        single = {
            name: value[[user]] if name in USER else value[[row]]
            for name, value in inputs.items()
            if name != "row_to_user"
        }
        answers.append(stubs.predict(single, signature_name=signature))
    return {name: np.concatenate([answer[name] for answer in answers]) for name in answers[0]}


@pytest.mark.parametrize(
    ("kind", "flags"),
    [
        *((kind, ()) for kind in KINDS),
        ("many", NOTHING_KEPT),
    ],
)
@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 1000),
    users=st.integers(1, 6),
    items=st.integers(1, 20),
    length=st.integers(1, 3),
)
def test_scores_equal_those_of_a_request_per_user(serve, kind, flags, seed, users, items, length):
    stubs = serve(kind, *flags)
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
    serve: Callable[..., Any],
):
    random = np.random.default_rng(1)
    users, items = random.random(3, np.float32), random.random(20, np.float32)
    row_to_user = random.integers(0, 3, 20)
    several = {"user": users, "item": items, "row_to_user": row_to_user}
    stubs = serve("dependent")

    def share(inputs: dict[str, Any], signature: str) -> Any:
        return stubs.predict(inputs, signature_name=signature, output_filter=["share"])["share"]

    repeated = stubs.predict({"user": users[row_to_user], "item": items}, signature_name="columnar")
    assert share(several, "columnar").tolist() == repeated["share"].tolist()
    late = share(several, "columnar_late")
    for user in range(3):
        of_user = row_to_user == user
        alone = share({"user": users[[user]], "item": items[of_user]}, "columnar_late")
        np.testing.assert_allclose(late[of_user], alone, rtol=1e-6)
    # An output without rows belongs to the whole request, not to one user.
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
    """The same requests as JSON in column format."""

    def post(self, stubs: Any, signature: str, inputs: dict[str, Any]) -> Any:
        plain = {name: np.asarray(value).tolist() for name, value in inputs.items()}
        body = json.dumps({"signature_name": signature, "inputs": plain}).encode()
        url = f"http://{stubs.server.rest_target}/v1/models/{stubs.model}:predict"
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


@pytest.fixture(scope="module", name="fresh")
def _fresh(serve: Callable[..., Any]) -> Any:
    """Stubs of a model that only this test uses, whose users never repeat."""
    return serve("many", *ONE_WORKER)


@pytest.fixture(name="client")
def _client(fresh: Any) -> Iterator[RankingClient]:
    with RankingClient(fresh.server.target, fresh.model, timeout_seconds=60) as connected:
        yield connected


def pair(seed: int, candidates: int = 5) -> tuple[dict[str, Any], dict[str, Any]]:
    """A user that only this seed gives, and candidates."""
    columns = stages_model.inputs(np.random.default_rng(seed), 1, candidates, 1 + seed % 3)
    columns["age"] = np.array([1000 + seed])
    user = {name: columns.pop(name)[0] for name in USER}
    return user, columns


def test_a_user_sent_ahead_is_not_computed_again(fresh: Any, client: RankingClient) -> None:
    user, items = pair(1)
    before = states_computed(fresh, "user")
    assert client.prefetch(user)
    assert states_computed(fresh, "user") == before + 1
    client.rank(user, items)
    assert states_computed(fresh, "user") == before + 1


def test_several_users_are_computed_once_each(fresh: Any, client: RankingClient) -> None:
    pairs = [pair(seed) for seed in range(10, 15)]
    before = states_computed(fresh, "user")
    found = client.rank_many(pairs)
    assert states_computed(fresh, "user") == before + 5
    for one, (user, items) in zip(found, pairs, strict=True):
        alone = client.rank(user, items)
        for name, values in alone.outputs.items():
            if values.dtype.kind == "f":
                np.testing.assert_allclose(one.outputs[name], values, rtol=1e-4)
            else:
                np.testing.assert_array_equal(one.outputs[name], values)
    assert states_computed(fresh, "user") == before + 5
