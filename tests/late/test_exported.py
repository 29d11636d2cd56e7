"""Scores of exported models, with users and items, and with shops and campaigns."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from colcast.export import ExportError, export_saved_model

from ..models import shops
from ..models.ranker import ITEMS, USER
from ..models.saving import serialized
from .conftest import Run, running


@pytest.fixture(scope="module")
def expected(base_path: Path) -> Any:
    """The scores of the original signature."""
    loaded = tf.saved_model.load(str(base_path / "1"))
    examples = tf.constant([serialized(USER | item) for item in ITEMS])
    return loaded.signatures["serving_default"](examples=examples)["score"].numpy()


def test_plain_tensorflow_runs_the_new_signatures_from_the_saved_model_alone(
    base_path: Path, expected: Any
) -> None:
    signatures = tf.saved_model.load(str(base_path / "1")).signatures
    user = {
        "user_age": tf.constant([USER["user_age"]], tf.int64),
        "user_words": tf.constant([USER["user_words"]]),
        "user_words/length": tf.constant([3], tf.int64),
    }
    items = {
        "item_id": tf.constant([item["item_id"] for item in ITEMS], tf.int64),
        "item_price": tf.constant([item["item_price"] for item in ITEMS], tf.float32),
    }
    rows = {"row_to_user": tf.zeros(len(ITEMS), tf.int64), "user_state/row": tf.zeros(1, tf.int64)}
    states = signatures["columnar_user"](**user) | signatures["columnar_item"](**items)
    by_stages = signatures["columnar_pair"](**states, **rows)["score"]
    late, exact = (signatures[f"columnar_{of}"](**user, **items) for of in ("late", "exact"))
    np.testing.assert_array_equal(exact["score"], expected)
    for scores in (late["score"], by_stages):
        np.testing.assert_allclose(scores, expected, rtol=1e-5)


def test_the_record_says_how_many_users_a_run_takes(base_path: Path) -> None:
    record = json.loads((base_path / "1" / "assets.extra" / "colcast.json").read_text())
    stages = record["signatures"]["columnar"]["parts"]
    assert stages["signatures"] == ["columnar_user", "columnar_item", "columnar_pair"]
    # the model's sum over words includes the padding to a longer list
    assert stages["users_per_run"] == "one"


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model of shops and campaigns, exported."""
    return shops.export(tmp_path_factory.mktemp("shops")) / "1"


@pytest.fixture(scope="module")
def run(exported: Path) -> Iterator[Run]:
    """A function that runs a signature."""
    with running(exported) as run_signature:
        yield run_signature


@pytest.mark.parametrize(("candidates", "of"), [(500, (50, 5)), (30, (30, 1)), (7, (2, 7))])
def test_an_exported_model_scores_by_stages(run: Run, candidates: int, of: tuple[int, int]) -> None:
    random = np.random.default_rng(candidates)
    given = run("columnar_item", items := shops.rows("item", candidates, random))
    late = items | shops.rows("user", 1, random)
    given |= run("columnar_user", late) | {"row_to_user": [0], "user_state/row": [0]}
    for domain, count in zip(("shop", "campaign"), of, strict=True):
        own, index = shops.rows(domain, count, random), random.integers(0, count, candidates)
        given |= run(f"columnar_{domain}", own)
        given |= {f"row_to_{domain}": index, f"{domain}_state/row": np.arange(count)}
        late |= {name: column[index] for name, column in own.items()}
    expected = run("columnar_late", late)["score"]
    np.testing.assert_allclose(run("columnar_pair", given)["score"], expected, rtol=1e-5)


def test_the_recorded_values(exported: Path) -> None:
    written = json.loads((exported / "assets.extra" / "colcast.json").read_text())
    columnar = written["signatures"]["columnar"]
    sides = {name: feature["side"] for name, feature in columnar["features"].items()}
    assert sides == {name: name.partition("_")[0] for name in shops.spec()}
    domains = ["user", "item", "campaign", "shop"]
    assert columnar["parts"]["domains"] == domains
    assert columnar["parts"]["states"].keys() == set(domains)
    assert columnar["independence"].keys() >= {f"columnar_{d}" for d in (*domains, "pair")}
    assert columnar["parts"]["states"]["shop"][0]["shape"] == [1, 32]


@pytest.mark.parametrize(
    ("domains", "error"),
    [
        ({"shop": ["shop_*"], "all": ["shop_id_0"]}, "feature 'shop_id_0' is in two domains"),
        ({"shop": ["user_id_*"]}, "'user_id_.' is in two domains: by --user-features 'user_.'"),
        ({"shop": ["store_*"]}, r"--domain shop='store_\*' matches no feature; the model takes"),
        ({"2nd": ["shop_*"]}, "domain '2nd': expected letters, digits and underscores"),
        ({"pair": ["shop_*"]}, "domain 'pair': this name is reserved"),
        ({"shop": []}, "domain 'shop' has no features"),
    ],
)
def test_domains_that_are_wrong_are_refused(
    exported: Path, tmp_path: Path, domains: Mapping[str, Sequence[str]], error: str
) -> None:
    with pytest.raises(ExportError, match=error):
        export_saved_model(
            shops.saved(exported), tmp_path / "out", user_features=["user_*"], domains=domains
        )
    assert not list(tmp_path.iterdir())
