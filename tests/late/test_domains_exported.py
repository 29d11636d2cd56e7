"""A model of shops and campaigns, exported: what TensorFlow itself scores, what is recorded."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from colcast.export import ExportError, export_saved_model
from colcast.export.report._recorded import read_report

from ..models import shops
from .conftest import Columns

v1 = tf.compat.v1
Run = Callable[[str, Columns], Columns]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model of shops and campaigns, exported."""
    return shops.export(tmp_path_factory.mktemp("shops")) / "1"


@pytest.fixture(scope="module")
def run(exported: Path) -> Iterator[Run]:
    """Runs a signature."""
    with v1.Session(graph=tf.Graph()) as session:
        loaded = v1.saved_model.loader.load(session, ["serve"], str(exported)).signature_def

        def run_signature(name: str, columns: Columns) -> Columns:
            feeds = {info.name: columns[key] for key, info in loaded[name].inputs.items()}
            fetches = {key: info.name for key, info in loaded[name].outputs.items()}
            outputs: Columns = session.run(fetches, feeds)
            return outputs

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


def test_what_is_recorded(exported: Path) -> None:
    written = json.loads((exported / "assets.extra" / "colcast.json").read_text())
    columnar = written["signatures"]["columnar"]
    sides = {name: feature["side"] for name, feature in columnar["features"].items()}
    assert sides == {name: name.partition("_")[0] for name in shops.spec()}
    domains = ["user", "item", "campaign", "shop"]
    assert columnar["parts"]["domains"] == domains
    assert columnar["parts"]["states"].keys() == set(domains)
    assert columnar["parts"]["user_states"] == columnar["parts"]["states"]["user"]
    assert columnar["independence"].keys() >= {f"columnar_{d}" for d in (*domains, "pair")}
    report = read_report(exported)
    assert report is not None
    assert written.pop("files")
    assert json.loads(json.dumps(report.to_json())) == written
    (stages,) = (signature.stages for signature in report.signatures)
    assert stages is not None
    assert any(line.startswith("  kept of a shop: 1 x float32 [1, 32]") for line in stages.lines())


@pytest.mark.parametrize(
    ("domains", "error"),
    [
        ({"shop": ["shop_*"], "all": ["shop_id_0"]}, "feature 'shop_id_0' is in two domains"),
        ({"shop": ["user_id_*"]}, "'user_id_.' is in two domains: by --user-features 'user_.'"),
        ({"shop": ["store_*"]}, r"--domain shop='store_\*' matches no feature; the model takes"),
        ({"2nd": ["shop_*"]}, "domain '2nd': expected letters, digits and underscores"),
        ({"pair": ["shop_*"]}, "domain 'pair': a signature has that name"),
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
