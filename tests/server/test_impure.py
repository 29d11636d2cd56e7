"""What a served signature writes is seen at once by every other one, whatever the record says."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from colcast.export import export_saved_model
from colcast.server import ServerProcess

from ..models import impure
from .conftest import Stubs, config_flag
from .metrics_page import Metrics

KINDS = ("written_variable", "mutable_table")
RECORDS = {
    "new": [],
    "says_nothing_of_writers": ["set"],  # as those of 0.2.0
}
MODELS = [f"{kind}-{record}" for kind in KINDS for record in RECORDS]


@pytest.fixture(scope="module", name="serve")
def _serve(
    tmp_path_factory: pytest.TempPathFactory, shared: Any, monitoring: list[str]
) -> Callable[..., ServerProcess]:
    """A server of all models with these flags."""
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
    config = config_flag(folder / "models.config", {name: folder / name for name in MODELS})
    return lambda *flags: shared("", "", config, *monitoring, *flags)


def kept(server: ServerProcess, model: str) -> float:
    return sum(
        sample.value
        for sample in Metrics(server).samples
        if sample.name == ":colcast:states_found_total" and sample.labels["model_name"] == model
    )


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("flags", [[], ["--graph_optimization=off"]])
def test_no_state_outlives_what_it_was_computed_from(
    serve: Callable[..., ServerProcess], model: str, flags: list[str]
) -> None:
    server = serve(*flags)
    stubs = Stubs(server.target, model=model)
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
    assert kept(server, model) == 0
    logged = (line for line in server.log().splitlines() if f'"{model}"' in line)
    assert any('which signature "set" writes' in line for line in logged)


@pytest.mark.parametrize("kind", KINDS)
def test_states_are_kept_where_the_writer_is_not_served(
    serve: Callable[..., ServerProcess], kind: str
) -> None:
    model = f"{kind}-says_nothing_of_writers"
    server = serve("--unserved_signatures=set")
    stubs = Stubs(server.target, model=model)
    for _ in range(40):
        stubs.predict(impure.request(5), signature_name="columnar_late")
    assert kept(server, model) > 0
