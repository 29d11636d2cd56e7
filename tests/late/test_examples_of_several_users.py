"""tf.Examples with --example_transcoding=late: each user is computed once."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from colcast.client import RankingClient
from colcast.export import export_saved_model
from colcast.loadtest.measure.meters import publishing
from colcast.server import ServerProcess

from ..models.ranker import ITEMS, save
from ..models.saving import serialized
from ..server.metrics_page import Metrics

USERS: list[dict[str, Any]] = [
    {"user_age": 44, "user_words": ["red", "blue"]},
    {"user_age": 44, "user_words": ["red", "blue", "green", "unheard of, and longer than others"]},
    {"user_age": 45, "user_words": []},
]


class Server:
    """A server with one way of reading tf.Examples, and a client."""

    def __init__(self, process: ServerProcess, client: RankingClient) -> None:
        self._process, self._client = process, client

    def scores(self, examples: list[bytes]) -> Any:
        """Scores tf.Examples with the signature that parses them."""
        return self._client.predict_examples(examples, target="example").scores

    def counted(self, what: str, **labels: str) -> float:
        """A counter's value so far."""
        samples = (s for s in Metrics(self._process).samples if s.name == f":colcast:{what}_total")
        return sum(s.value for s in samples if labels.items() <= s.labels.items())


@pytest.fixture(scope="module", name="serve")
def _serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    monitoring = publishing(tmp_path_factory.mktemp("monitoring"))
    with ExitStack() as open_until_the_end:

        def serve(base_path: Path, mode: str, *flags: str) -> Server:
            every = [*monitoring, f"--example_transcoding={mode}", *flags]
            process = open_until_the_end.enter_context(ServerProcess("ranker", base_path, every))
            client = RankingClient(process.target, "ranker")
            return Server(process, open_until_the_end.enter_context(client))

        yield serve


@pytest.fixture(scope="module", name="many")
def _many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The base path of a model whose last stage scores several users in one run."""
    folder = tmp_path_factory.mktemp("many")
    save(folder / "model", masked=True)
    (report,) = export_saved_model(
        folder / "model", folder / "ranker" / "1", user_features=["user_*"], late=True
    ).signatures
    assert report.stages is not None
    assert report.stages.users_per_run == "many"
    return folder / "ranker"


@pytest.fixture(scope="module")
def off(serve: Callable[..., Server], many: Path) -> Server:
    """A server that lets TensorFlow parse Examples."""
    return serve(many, "off")


@pytest.fixture(scope="module")
def late(serve: Callable[..., Server], many: Path) -> Server:
    """A server that reads Examples as columns and has no state cache, so it computes all states."""
    return serve(many, "late", "--user_state_bytes=0", "--item_state_bytes=0")


def _rows(users: list[dict[str, Any]]) -> list[bytes]:
    return [serialized(user | ITEMS[n % len(ITEMS)]) for n, user in enumerate(users)]


def _check(off: Server, late: Server, examples: list[bytes], users: int) -> None:
    before, transcoded = late.counted("states_computed", store="user"), _transcoded(late)
    np.testing.assert_allclose(late.scores(examples), off.scores(examples), rtol=1e-5)
    assert _transcoded(late) == transcoded + 1
    assert late.counted("states_computed", store="user") == before + users


def _transcoded(server: Server) -> float:
    return server.counted("transcoded_requests")


def _named(age: int | None, *words: str) -> dict[str, Any]:
    return {"user_words": list(words)} | ({} if age is None else {"user_age": age})


CASES: dict[str, tuple[list[dict[str, Any]], int]] = {
    "three users": (USERS * 20, 3),
    "rows that are not adjacent": ([USERS[0], USERS[1]] * 4, 2),
    "lists of other lengths": ([_named(1), _named(2, "red"), _named(3, "red", "blue")] * 4, 3),
    "a long list first": ([_named(4, "red", "blue", "green"), _named(1), _named(2, "red")] * 4, 3),
    "an additional empty string": ([_named(None, "red"), _named(None, "red", "")] * 4, 2),
    "one user written in two ways": ([_named(30, "red"), _named(None, "red")] * 4, 1),
    "users that hardly repeat, scored as rows": ([*USERS, USERS[0], USERS[1]], 0),
}


@pytest.mark.parametrize("case", CASES)
def test_each_user_is_computed_once(off: Server, late: Server, case: str) -> None:
    users, computed = CASES[case]
    _check(off, late, _rows(users), users=computed)


def test_where_a_run_takes_one_user_rows_stay_together(base_path: Path, serve: Any) -> None:
    """The model's scores depend on the longest list of the request."""
    _check(serve(base_path, "off"), serve(base_path, "late"), _rows(USERS * 4), users=0)


def test_kept_states_of_users_are_found(many: Path, off: Server, serve: Any) -> None:
    examples, late = _rows(USERS * 8), serve(many, "late")
    expected, before = off.scores(examples), late.counted("states_computed", store="user")
    for _ in range(3):
        np.testing.assert_allclose(late.scores(examples), expected, rtol=1e-5)
    assert late.counted("states_computed", store="user") == before + len(USERS)
