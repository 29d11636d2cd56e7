"""A request that sends the user once runs as the exact signature.

In an export, both signatures give the same scores. Here the exact one adds 0.5, to show which one
ran.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from colcast.export import export_saved_model
from colcast.zoo.saving import with_record

from ..models import impure
from ..models.saving import save_graph
from .metrics_page import Metrics
from .servers import AS_SAVED, Stubs

v1 = tf.compat.v1
EXACT = 0.5


def save(directory: Path, recorded: bool = True) -> None:
    """Saves score = 100 user + item; the server uses the exact signature only if it is recorded."""
    with tf.Graph().as_default(), v1.Session() as session:

        def signature(prefix: str, user_shape: list[int | None], more: float) -> Any:
            user = v1.placeholder(tf.float32, user_shape, f"{prefix}user")
            item = v1.placeholder(tf.float32, [None], f"{prefix}item")
            scale = v1.placeholder(tf.float32, [], f"{prefix}scale")
            score = scale * (100.0 * user + item) + more
            inputs = {"user": user, "item": item, "scale": scale}
            return v1.saved_model.predict_signature_def(inputs, {"score": score, "user": 2 * user})

        exact = signature("columnar_exact/inputs/", [1], EXACT)
        signatures = {"columnar": signature("", [None], 0.0), "columnar_exact": exact}
        save_graph(directory, session, signatures)
    if recorded:
        with_record(directory, {"columnar": {"source_input": None}})


@pytest.fixture(scope="module")
def ranker(tmp_path_factory: pytest.TempPathFactory, serve) -> Any:
    base_path = tmp_path_factory.mktemp("exact")
    save(base_path / "1")
    return serve(base_path)


def scores(stubs: Any, user: list[float], item: list[float]) -> list[float]:
    inputs = {"user": user, "item": item, "scale": 1.0}
    return stubs.predict(inputs, signature_name="columnar")["score"].tolist()


def test_the_user_sent_once_is_run_by_the_exact_signature(ranker):
    assert scores(ranker, [2.0], [1.0, 2.0, 3.0]) == [201 + EXACT, 202 + EXACT, 203 + EXACT]


def test_a_signature_that_only_has_the_name_is_not_used(tmp_path: Path, serve):
    save(tmp_path / "1", recorded=False)
    assert scores(serve(tmp_path), [2.0], [1.0, 2.0]) == [201, 202]


KINDS = ("written_variable", "mutable_table")
RECORDS = {
    "new": [],
    "says_nothing_of_writers": ["set"],  # as version 0.2.0 recorded it
}
MODELS = [f"{kind}-{record}" for kind in KINDS for record in RECORDS]


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the base paths of all models."""
    folder = tmp_path_factory.mktemp("impure")
    for kind in KINDS:
        impure.save(folder / "saved" / kind, kind)
        for record, unserved in RECORDS.items():
            export_saved_model(
                folder / "saved" / kind,
                folder / f"{kind}-{record}" / "1",
                user_features=["user_*"],
                late=True,
                unserved_signatures=unserved,
            )
    return folder


def kept(stubs: Stubs) -> float:
    return sum(
        sample.value
        for sample in Metrics(stubs.server).samples
        if sample.name == ":colcast:states_found_total"
        and sample.labels["model_name"] == stubs.model
    )


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("flags", [(), AS_SAVED])
def test_no_state_outlives_what_it_was_computed_from(
    serve: Callable[..., Stubs], folder: Path, model: str, flags: tuple[str, ...]
) -> None:
    stubs = serve(folder / model, *flags)
    request = impure.request(5)
    base = stubs.predict(request, signature_name="columnar_late")["score"]
    for value in (1.0, 2.0, -3.5):
        stubs.predict({"value": np.float32(value)}, signature_name="set")
        for signature in ("columnar_late", "columnar", "serving_default"):
            inputs = request
            if signature == "serving_default":
                inputs = {**request, "user_vector": request["user_vector"].repeat(5, 0)}
            given = stubs.predict(inputs, signature_name=signature)["score"]
            np.testing.assert_allclose(given, base + value, rtol=1e-4, atol=1e-4)
    assert kept(stubs) == 0
    logged = (line for line in stubs.server.log().splitlines() if f'"{stubs.model}"' in line)
    assert any('which signature "set" writes' in line for line in logged)


@pytest.mark.parametrize("kind", KINDS)
def test_states_are_kept_where_the_writer_is_not_served(
    serve: Callable[..., Stubs], folder: Path, kind: str
) -> None:
    stubs = serve(folder / f"{kind}-says_nothing_of_writers", "--unserved_signatures=set")
    for _ in range(40):
        stubs.predict(impure.request(5), signature_name="columnar_late")
    assert kept(stubs) > 0
