"""The commands of docs/rest.md answer what the page shows."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

PAGE = (Path(__file__).parents[2] / "docs" / "rest.md").read_text()
BLOCKS = re.findall(r"```shell\n\$ (.*?)\n(.*?)```", PAGE, re.DOTALL)
CALLS = [(command, answer) for command, answer in BLOCKS if "curl" in command]


class Movies(tf.Module):
    """The model the page describes."""

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.float32, "age"),
            tf.TensorSpec([None], tf.int64, "year"),
            tf.TensorSpec([None], tf.string, "title"),
        ]
    )
    def rank(self, age: tf.Tensor, year: tf.Tensor, title: tf.Tensor) -> dict[str, tf.Tensor]:
        """Newer movies for younger users."""
        return {"score": tf.cast(year, tf.float32) - age, "name": title + "!"}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def halve(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        """One input and one output."""
        return {"y": x / 2}


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory, serve: Any) -> str:
    path = tmp_path_factory.mktemp("movies")
    module = Movies()
    signatures = {"serving_default": module.rank, "halve": module.halve}
    tf.saved_model.save(module, str(path / "1"), signatures=signatures)
    return serve(path, name="movies").server.rest_target


def test_the_page_has_commands() -> None:
    assert len(CALLS) == 4


@pytest.mark.parametrize(("command", "answer"), CALLS)
def test_a_command_answers_what_the_page_shows(target: str, command: str, answer: str) -> None:
    silent = command.replace("curl", "curl -sS").replace("localhost:8501", target)
    ran = subprocess.run(silent, shell=True, capture_output=True, text=True, timeout=60)
    assert ran.stdout.rstrip() == answer.rstrip(), ran.stderr
