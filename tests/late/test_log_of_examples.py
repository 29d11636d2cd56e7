"""The log says once for each loaded version how it reads tf.Examples, and why."""

import json
import shutil
from pathlib import Path

import pytest
import tensorflow as tf
from colcast.client import RankingClient
from colcast.export import export_saved_model
from colcast.server import ServerProcess

from ..models.ranker import ITEMS, USER
from ..models.saving import save_parser, save_version, serialized


def said_by(base_path: Path, *flags: str) -> list[str]:
    """What is logged about tf.Examples while two requests with some are answered."""
    examples = [serialized(USER | item) for item in ITEMS]
    with (
        ServerProcess("ranker", base_path, flags) as server,
        RankingClient(server.target, "ranker", timeout_seconds=60) as client,
    ):
        for _ in range(2):
            assert len(client.predict_examples(examples, target="example").scores) == len(ITEMS)
        return [line for line in server.log().splitlines() if "tf.Examples are" in line]


@pytest.mark.parametrize(("mode", "runs"), [("exact", "columnar"), ("late", "columnar_late")])
def test_what_is_run_in_the_place_of_a_signature(base_path: Path, mode: str, runs: str) -> None:
    (said,) = said_by(base_path, f"--example_transcoding={mode}")
    assert f'"serving_default": tf.Examples are read as columns and run by "{runs}"' in said


def test_nothing_where_it_is_off(base_path: Path) -> None:
    assert said_by(base_path, "--example_transcoding=off") == []


def test_the_exports_reason_why_not(base_path: Path, tmp_path: Path) -> None:
    shutil.copytree(base_path / "1", tmp_path / "1")
    file = tmp_path / "1" / "assets.extra" / "colcast.json"
    record = json.loads(file.read_text())
    reason = "the model draws random numbers"
    record["signatures"]["columnar"]["example_transcoding"] = reason
    file.write_text(json.dumps(record))
    (said,) = said_by(tmp_path)
    assert f'"serving_default": tf.Examples are parsed by TensorFlow: {reason}' in said


def test_a_model_that_no_export_wrote(base_path: Path, tmp_path: Path) -> None:
    shutil.copytree(base_path / "1", tmp_path / "1")
    shutil.rmtree(tmp_path / "1" / "assets.extra")
    (said,) = said_by(tmp_path)
    assert "parsed by TensorFlow: no export converted it (assets.extra/colcast.json)" in said


def test_nothing_of_signatures_of_columns(base_path: Path, tmp_path: Path) -> None:
    """Of one feature of strings each: an export's stage of the user, and a model of its own."""
    spec = {name: tf.io.FixedLenFeature([], tf.string) for name in ("user_name", "item_name")}

    def score(features: dict[str, tf.Tensor]) -> tf.Tensor:
        lengths = [tf.strings.length(features[name]) for name in spec]
        return tf.cast(lengths[0] * lengths[1], tf.float32)

    save_parser(tmp_path / "model", tf.Module(), spec, score)
    export_saved_model(
        tmp_path / "model", tmp_path / "texts" / "1", user_features=["user_*"], late=True
    )

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "title")])
    def own(title: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"length": tf.strings.length(title)}

    save_version(tmp_path / "titles" / "1", tf.Module(), own)
    for name, examples in (("texts", 1), ("titles", 0)):
        with ServerProcess(name, tmp_path / name) as server:
            said = [line for line in server.log().splitlines() if "tf.Examples are" in line]
        assert len(said) == examples, said
        assert all('"serving_default"' in line for line in said)
