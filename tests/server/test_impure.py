"""What a served signature writes is seen at once by every other one, whatever the record says."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from colcast.export import export_saved_model

from ..models import impure
from .metrics_page import Metrics
from .servers import AS_SAVED, Stubs

KINDS = ("written_variable", "mutable_table")
RECORDS = {
    "new": [],
    "says_nothing_of_writers": ["set"],  # as those of 0.2.0
}
MODELS = [f"{kind}-{record}" for kind in KINDS for record in RECORDS]


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the base paths of all models."""
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
