"""JAX models, exported as docs/models.md describes, get JAX's scores with the user sent once."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from colcast.client import RankingClient
from colcast.export import ExportError, export_saved_model
from colcast.server import ServerProcess

from ..other_environment import JAX

MODELS = ["by_keras", "by_hand"]
ROWS = (7, 20)

pytestmark = pytest.mark.skipif(
    JAX.package("jax") is None,
    reason="JAX is in an environment of its own: make setup-jax",
)
export = partial(export_saved_model, user_features=["user_*"])


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("jax")
    JAX.run("recipes/jax_models.py", folder)
    return folder


def request(saved: Path, rows: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A request of the first user and the first `rows` items."""
    with np.load(saved / "rows.npz") as file:
        user = {name: file[name][0] for name in file if name.startswith("user_")}
        return user, {name: file[name][:rows] for name in ("item_id", "price")}


@pytest.fixture(scope="module", params=MODELS)
def served(request: pytest.FixtureRequest, saved: Path) -> tuple[str, dict[str, Path]]:
    """A model's name, and the base paths of its exports as one compiled op and as plain ops."""
    name = request.param
    compiled, plain = saved / name / "served" / "1", saved / f"{name}_plain" / "served" / "1"
    (report,) = export(saved / name / "model", compiled, warmup=[20]).signatures
    assert report.compiled.ops == 1
    (report,) = export(saved / f"{name}_plain" / "model", plain, late=True).signatures
    assert report.compiled is None
    assert report.stages.written
    return name, {"compiled": compiled.parent, "plain": plain.parent}


@pytest.mark.parametrize("way", ["compiled", "plain"])
def test_scores_are_those_of_jax_with_the_user_sent_once(
    saved: Path, served: tuple[str, dict[str, Path]], way: str
) -> None:
    name, folders = served
    with np.load(saved / "rows.npz") as file:
        whole = {key: file[key] for key in file if key not in MODELS}
        expected = file[name].reshape(-1)
    with (
        ServerProcess("jax", folders[way]) as server,
        RankingClient(server.target, "jax") as client,
    ):
        given = client.rank({}, whole, target="columnar").scores
        np.testing.assert_allclose(np.ravel(given), expected, rtol=1e-4, atol=1e-5)
        for rows in ROWS:
            user, items = request(saved, rows)
            repeated = {key: np.repeat(np.asarray(v)[None], rows, 0) for key, v in user.items()}
            once = client.rank(user, items).scores
            again = client.rank({}, {**repeated, **items}, target="columnar").scores
            np.testing.assert_allclose(once, again, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_late_is_refused_for_a_model_compiled_as_a_whole(
    saved: Path, name: str, tmp_path: Path
) -> None:
    with pytest.raises(ExportError, match=r"--late gains nothing: .*XlaCallModule"):
        export(saved / name / "model", tmp_path / "1", late=True)
