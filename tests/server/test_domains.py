"""Several users, shops and campaigns: each distinct row is sent once and computed once."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from colcast.client import RankingClient
from hypothesis import given, settings
from hypothesis import strategies as st

from ..models import dependent_model, shops, stages_model
from .metrics_page import states_computed
from .servers import NOTHING_KEPT, Stubs

v1 = tf.compat.v1
Columns = dict[str, Any]
INDEXED = ("user", "item", "shop", "campaign")
SIGNATURES = ("columnar", "columnar_late")


@pytest.fixture(scope="module", name="score")
def _score(shops_path: Path) -> Iterator[Any]:
    """A function that scores candidates in TensorFlow; every column has a row per candidate."""
    session = v1.Session(graph=tf.Graph())
    with session.graph.as_default():
        loaded = v1.saved_model.loader.load(session, ["serve"], str(shops_path / "1"))
    signature = loaded.signature_def["columnar"]

    def run(columns: Mapping[str, Any]) -> Any:
        feeds = {signature.inputs[name].name: value for name, value in columns.items()}
        return session.run(signature.outputs["score"].name, feeds)

    yield run
    session.close()


@pytest.fixture(
    scope="module", params=[(), NOTHING_KEPT], ids=["kept", "nothing kept"], name="stubs"
)
def _stubs(request: pytest.FixtureRequest, shops_path: Path, serve: Any) -> Stubs:
    return serve(shops_path, *request.param)


@pytest.fixture(scope="module", name="counted")
def _counted(shops_path: Path, serve: Any) -> Stubs:
    """Stubs of a model whose random rows no other test sends."""
    return serve(shops_path)


def request_of(random: np.random.Generator, rows: Mapping[str, int], count: int) -> Columns:
    """A random request of `count` candidates; it has an index for each domain in `rows`."""
    columns: Columns = {}
    for domain in INDEXED:
        own = rows.get(domain, 1 if domain == "user" else count)
        columns |= shops.rows(domain, own, random)
        if domain in rows:
            columns[f"row_to_{domain}"] = random.integers(0, own, count)
    return columns


def taken(columns: Columns, domain: str, rows: Any) -> Columns:
    """Selects rows of a domain's columns."""
    return {name: c[rows] for name, c in columns.items() if name.startswith(f"{domain}_")}


def repeated(columns: Columns, count: int) -> Columns:
    """Expands every column of the request to one row per candidate."""
    made = {}
    for name, column in columns.items():
        if name.startswith("row_to_"):
            continue
        index = columns.get(f"row_to_{name.partition('_')[0]}")
        if index is None:
            index = np.zeros(count, int) if len(column) == 1 else np.arange(count)
        made[name] = column[index]
    return made


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    rows=st.dictionaries(st.sampled_from(INDEXED), st.integers(1, 9)),
    count=st.integers(1, 40),
    items=st.integers(1, 40),
)
def test_scores_are_those_of_repeated_rows(
    stubs: Any, score: Any, seed: int, rows: dict[str, int], count: int, items: int
) -> None:
    random = np.random.default_rng(seed)
    columns = request_of(random, rows, count)
    if "item" not in rows:  # no index tells the server which items repeat
        columns |= taken(columns, "item", random.integers(0, min(items, count), count))
    expected = score(repeated(columns, count))
    for signature in SIGNATURES:
        got = stubs.predict(columns, signature_name=signature)["score"]
        np.testing.assert_allclose(got, expected, rtol=2e-5, err_msg=signature)


def refused(stubs: Stubs, columns: Columns, signature: str) -> str:
    """The message that refuses a request; the same request with good indices is then answered."""
    with pytest.raises(grpc.RpcError) as error:
        stubs.predict(columns, signature_name=signature)
    assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    return str(error.value.details())


@pytest.mark.parametrize("signature", SIGNATURES)
@pytest.mark.parametrize(
    ("index", "words"),
    [
        (np.array([0, 1, 3, 1]), ["row 2 is 3, expected 0 to 2", "a row of the shop columns"]),
        (np.array([0, -1, 0, 1]), ["row 1 is -1"]),
        (np.array([0, 1, 2, 2**63 - 1]), ["row 3", str(2**63 - 1)]),
        (np.array([-(2**63), 1, 2, 1]), ["row 0", str(-(2**63))]),
        (np.array([0, 1, 2]), ["has 3 rows", "N = 4"]),
        (np.array([0, 1, 2, 0], np.int32), ["int32", "int64"]),
        (np.array([[0, 1, 2, 0]]), ["[1,4]"]),
        (["a", "b", "c", "d"], ["string"]),
    ],
)
def test_an_index_that_names_no_row_is_refused(
    stubs: Any, signature: str, index: Any, words: list[str]
) -> None:
    columns = request_of(np.random.default_rng(1), {"shop": 3, "user": 2}, 4)
    said = refused(stubs, columns | {"row_to_shop": index}, signature)
    assert all(word in said for word in ['"row_to_shop"', *words]), said
    assert len(stubs.predict(columns, signature_name=signature)["score"]) == 4


def test_an_index_of_no_domain_and_rows_of_another_number_are_refused(stubs: Any) -> None:
    columns = request_of(np.random.default_rng(1), {"shop": 3}, 4)
    said = refused(stubs, columns | {"row_to_author": [0] * 4}, "columnar_late")
    assert 'input "row_to_author" is not in the signature' in said
    said = refused(stubs, columns | {"shop_id_0": np.array([1, 2])}, "columnar_late")
    assert '"shop_id_0" has 2 rows' in said


STAGES = {"many": {}, "one": {"users_per_run": "one"}, "unnumbered": {"numbered": False}}


@pytest.mark.parametrize("kind", STAGES)
def test_several_users_get_the_scores_of_repeated_rows_however_the_last_stage_takes_them(
    serve: Any, tmp_path: Path, kind: str
) -> None:
    stages_model.save(tmp_path / "1", **STAGES[kind])
    stubs = serve(tmp_path)
    for seed in range(15):
        random = np.random.default_rng(seed)
        users, count = int(random.integers(1, 7)), int(random.integers(1, 21))
        columns = stages_model.inputs(random, users, count, int(random.integers(1, 4)))
        index = random.integers(0, users, count)
        own = stages_model.DOMAINS["user"]
        plain = {name: c[index] if name in own else c for name, c in columns.items()}
        expected = stubs.predict(plain, signature_name="columnar")
        for signature in SIGNATURES:
            got = stubs.predict(columns | {"row_to_user": index}, signature_name=signature)
            same(signature, got["score"], expected["score"])
            np.testing.assert_array_equal(got["tag"], expected["tag"])


def test_where_candidates_interact_columnar_is_one_run_and_late_one_for_each_user(
    serve: Any, tmp_path: Path
) -> None:
    random = np.random.default_rng(1)
    users, items = random.random(3, np.float32), random.random(20, np.float32)
    row_to_user = random.integers(0, 3, 20)
    several = {"user": users, "item": items, "row_to_user": row_to_user}
    dependent_model.save(tmp_path / "1")
    stubs = serve(tmp_path)

    def share(inputs: Columns, signature: str) -> Any:
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


def computed(stubs: Stubs) -> dict[str, float]:
    """The number of rows computed so far, by domain."""
    return {store: states_computed(stubs, store) for store in INDEXED}


def grown(stubs: Stubs, before: dict[str, float]) -> dict[str, float]:
    """The number of rows computed since `before`, by domain."""
    return {store: count - before[store] for store, count in computed(stubs).items()}


@pytest.mark.parametrize("indexed", [True, False])
def test_each_distinct_row_is_computed_once(counted: Stubs, indexed: bool) -> None:
    """Tests rows that repeat by an index, and equal rows that the server must find."""
    random = np.random.default_rng([3, indexed])
    columns = request_of(random, {"shop": 5, "campaign": 2}, 60)
    if not indexed:
        columns = repeated(columns, 60)
        columns |= {name: c[:1] for name, c in columns.items() if name.startswith("user_")}
    before = computed(counted)
    counted.predict(columns, signature_name="columnar_late")
    assert grown(counted, before) == {"user": 1, "item": 60, "shop": 5, "campaign": 2}


def test_items_that_users_share_are_computed_once(stubs: Any, score: Any) -> None:
    """Here items have one row per candidate; states may be cached or not."""
    random = np.random.default_rng([4, 4])
    columns = request_of(random, {"user": 3, "shop": 5, "campaign": 2}, 60)
    columns |= taken(columns, "item", np.tile(np.arange(20), 3))
    columns["row_to_user"] = np.repeat(np.arange(3), 20)
    before = computed(stubs)
    got = stubs.predict(columns, signature_name="columnar_late")["score"]
    assert grown(stubs, before) == {"user": 3, "item": 20, "shop": 5, "campaign": 2}
    np.testing.assert_allclose(got, score(repeated(columns, 60)), rtol=2e-5)


# The client's requests.

CANDIDATES = 1600


def user_of(random: np.random.Generator) -> Columns:
    """A user's features as a client's caller has them."""
    columns = shops.rows("user", 1, random)
    return {
        name: values[0][: columns[f"{name}/length"][0]]
        if f"{name}/length" in columns
        else values[0]
        for name, values in columns.items()
        if not name.endswith("/length")
    }


def candidates(random: np.random.Generator) -> dict[str, list[Any]]:
    """Candidates that have few shops and campaigns: feature -> an entry per candidate."""
    columns: Columns = shops.rows("item", CANDIDATES, random)
    for domain, rows in (("shop", 40), ("campaign", 5)):
        picked = random.integers(0, rows, CANDIDATES)
        columns |= {name: c[picked] for name, c in shops.rows(domain, rows, random).items()}
    lists = {name for name in columns if f"{name}/length" in columns}
    return {
        name: [row[:length] for row, length in zip(c, columns[f"{name}/length"], strict=True)]
        if name in lists
        else list(c)
        for name, c in columns.items()
        if not name.endswith("/length")
    }


def frame_of(items: dict[str, list[Any]], rows: int = CANDIDATES) -> pd.DataFrame:
    """The first candidates."""
    return pd.DataFrame({name: column[:rows] for name, column in items.items()})


@pytest.fixture(scope="module", name="clients")
def _clients(stubs: Any) -> Iterator[tuple[RankingClient, RankingClient]]:
    """A client that sends distinct rows once, and one that sends all rows."""
    options = {"timeout_seconds": 60}
    with (
        RankingClient(stubs.server.target, stubs.model, **options) as once,
        RankingClient(stubs.server.target, stubs.model, dedupe="off", **options) as each,
    ):
        yield once, each


def same(signature: str, got: Any, expected: Any) -> None:
    """Checks scores: those of `columnar` bit for bit, late ones within their tolerance."""
    tolerance = 0 if signature == "columnar" else 2e-5
    np.testing.assert_allclose(got, expected, rtol=tolerance, err_msg=signature)


@pytest.mark.parametrize("signature", SIGNATURES)
def test_a_client_that_sends_rows_once_gets_the_same_scores(clients: Any, signature: str) -> None:
    random = np.random.default_rng(5)
    user, items = user_of(random), frame_of(candidates(random))
    once, each = clients
    same(signature, *(c.rank(user, items, target=signature).scores for c in clients))
    prepared = once.prepare(items, target=signature)
    expected = each.rank(user, items, target=signature).scores
    same(signature, once.rank(user, prepared, target=signature).scores, expected)
    sent = once.encode(user, items, target=signature)
    assert b"row_to_shop" in sent
    assert b"row_to_campaign" in sent
    assert len(sent) < 0.6 * len(each.encode(user, items, target=signature))


@pytest.mark.parametrize("signature", SIGNATURES)
def test_users_who_share_candidates_get_the_scores_of_separate_requests(
    clients: Any, signature: str
) -> None:
    random = np.random.default_rng(6)
    made, users = candidates(random), [user_of(random) for _ in range(4)]
    pairs = [(user, frame_of(made, 30 + place)) for place, user in enumerate(users)]
    once, each = clients
    together = once.rank_many(pairs, target=signature)
    for (user, items), ranking in zip(pairs, together, strict=True):
        alone = each.rank(user, items, target=signature)
        np.testing.assert_allclose(ranking.scores, alone.scores, rtol=2e-5)
    same_requests = each.rank_many(pairs, target=signature)
    for ranking, other in zip(together, same_requests, strict=True):
        same(signature, ranking.scores, other.scores)


def test_candidates_of_several_users_are_computed_once(counted: Stubs) -> None:
    random = np.random.default_rng([7, 7])
    items = frame_of(candidates(random), 70)
    before = computed(counted)
    with RankingClient(counted.server.target, counted.model, timeout_seconds=60) as client:
        client.rank_many([(user_of(random), items) for _ in range(15)])
    counts = grown(counted, before)
    assert (counts["user"], counts["item"]) == (15, 70)
