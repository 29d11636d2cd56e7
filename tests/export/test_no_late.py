"""Signatures that have no late form, and models whose candidates affect each other."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from click.testing import CliRunner
from colcast.export.cli import command

SPEC = {name: tf.io.FixedLenFeature([], tf.int64) for name in ("user_id", "item_id")}


class Ranker(tf.Module):
    """Embeddings of a user and an item, and signatures that score them in different ways."""

    def __init__(self) -> None:
        super().__init__()
        random = np.random.default_rng(0)
        shapes = ((50, 8), (50, 8), (16, 16), (16, 1))
        self.users, self.items, self.kernel, self.last = (
            tf.Variable(random.normal(size=shape).astype(np.float32)) for shape in shapes
        )

    def logits(self, parsed: dict[str, Any]) -> Any:
        user = tf.gather(self.users, parsed["user_id"] % 50)
        item = tf.gather(self.items, parsed["item_id"] % 50)
        hidden = tf.nn.relu(tf.concat([user, item], 1) @ self.kernel)
        return tf.squeeze(hidden @ self.last, 1)

    def tower(self, parsed: dict[str, Any]) -> dict[str, Any]:
        return {"vector": tf.gather(self.users, parsed["user_id"] % 50)}

    def score(self, parsed: dict[str, Any]) -> dict[str, Any]:
        return {"score": self.logits(parsed)}

    def share(self, parsed: dict[str, Any]) -> dict[str, Any]:
        return {"share": tf.nn.softmax(30 * self.logits(parsed), name="share")}

    def total(self, parsed: dict[str, Any]) -> dict[str, Any]:
        logits = self.logits(parsed)
        return {"score": logits, "total": tf.reduce_sum(logits, name="total")}

    def bits(self, parsed: dict[str, Any]) -> dict[str, Any]:
        return {"bits": tf.bitcast(self.logits(parsed), tf.int32)}

    def ranks(self, parsed: dict[str, Any]) -> dict[str, Any]:
        logits = self.logits(parsed)
        less = tf.cast(logits[:, None] > logits[None, :], tf.int32)
        return {"sum": tf.reduce_sum(less * tf.bitcast(logits, tf.int32)[None, :], 1)}


def save(folder: Path, **serve: Callable[..., Any]) -> Path:
    def parsing(score: Callable[..., Any], names: list[str]) -> Any:
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "examples")])
        def parse(examples: Any) -> Any:
            return score(tf.io.parse_example(examples, {name: SPEC[name] for name in names}))

        return parse

    features = {"tower": ["user_id"]}
    signatures = {name: parsing(of, features.get(name, [*SPEC])) for name, of in serve.items()}
    module = next(iter(serve.values())).__self__  # type: ignore[attr-defined]
    tf.saved_model.save(module, str(folder), signatures)
    return folder


def export(folder: Path, *options: str) -> tuple[int, str, dict[str, Any]]:
    """Runs `colcast export`; returns its exit code, its output and the signatures' records."""
    output = folder.parent / "out"
    arguments = [f"--saved-model={folder}", f"--output={output}", "--user-features=user_*"]
    ran = CliRunner().invoke(command, [*arguments, *options])
    file = output / "assets.extra" / "colcast.json"
    return (
        ran.exit_code,
        " ".join(ran.output.split()),  # lines are as wide as the terminal
        json.loads(file.read_text())["signatures"] if file.exists() else {},
    )


def test_late_is_skipped_for_a_signature_of_the_user_alone(tmp_path: Path) -> None:
    model = Ranker()
    folder = save(tmp_path / "model", serving_default=model.score, tower=model.tower)
    code, said, found = export(folder, "--late", "--signature=serving_default", "--signature=tower")
    assert code == 0, said
    assert found["columnar"]["late"]["signature"] == "columnar_late"
    assert found["columnar"]["no_late"] == ""
    assert found["columnar_tower"]["late"] is None
    why = "every feature is the user's (user_id); a late signature needs an item feature"
    assert found["columnar_tower"]["no_late"].startswith(why)
    assert f"no late signature: {why}" in said


def test_late_is_refused_before_any_run_if_no_signature_may_have_it(tmp_path: Path) -> None:
    code, said, found = export(save(tmp_path / "model", tower=Ranker().tower), "--late",
                               "--signature=tower")  # fmt: skip
    assert (code, found) == (1, {})
    assert "signature 'tower': every feature is the user's (user_id)" in said
    assert "finding rows" not in said


@pytest.mark.parametrize("late", [[], ["--late"]])
def test_of_candidates_that_affect_each_other_columns_are_exported(
    tmp_path: Path, late: list[str]
) -> None:
    code, said, found = export(save(tmp_path / "model", serving_default=Ranker().share), *late)
    assert code == 0, said
    own = found["columnar"]["independence"]["columnar"]
    assert (own["rows"], own["why_not"]) == (False, "candidates affect each other (Softmax share)")
    assert found["columnar"]["late"] is None
    assert "limits:" in said
    assert "next step: --late" not in said
    assert "candidates affect each other (Softmax share)" in said
    needs = "late needs a larger --max-relative-difference, columns are exported (output 'share'"
    assert (needs in said) == bool(late)


def test_an_output_for_all_candidates_together_is_exported(tmp_path: Path) -> None:
    code, said, found = export(save(tmp_path / "model", serving_default=Ranker().total), "--late")
    assert code == 0, said
    own = found["columnar"]["independence"]["columnar"]
    assert (own["rows"], own["why_not"]) == (False, "candidates affect each other (Sum total)")
    assert found["columnar"]["late"]["signature"] == "columnar_late"


def test_integers_that_rank_candidates_are_no_reason_to_allow_a_difference(tmp_path: Path) -> None:
    code, said, found = export(save(tmp_path / "model", serving_default=Ranker().ranks), "--late")
    assert code == 0, said
    assert found["columnar"]["no_late"].startswith("candidates affect each other (")
    assert "late needs outputs without ranks, columns are exported (output 'sum'" in said
    assert "values of type int32 must be equal" in said


def test_an_integer_that_rounding_changes_is_refused_with_what_to_do(tmp_path: Path) -> None:
    code, said, _ = export(save(tmp_path / "model", serving_default=Ranker().bits), "--late")
    assert code == 1
    assert "values of type int32 must be equal" in said
    assert "leave it out of the signature, and rank in the client, or leave out --late" in said
    assert "--max-relative-difference" not in said
