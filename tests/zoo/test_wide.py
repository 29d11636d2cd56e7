"""The wide model, the zoo's cache of models, and TensorFlow's log level."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from colcast.zoo import wide
from colcast.zoo.cache import cached
from colcast.zoo.examples import serialize, serialize_request

SMALL = wide.Wide(name="small", user_features=5, item_features=4, embedding_width=3, hidden=(8,))


def scores(base_path: Path, examples: list[bytes]) -> np.ndarray:
    signature = tf.saved_model.load(str(base_path / "1")).signatures["serving_default"]
    return signature(examples=tf.constant(examples))["score"].numpy()


def examples(seed: int) -> list[bytes]:
    return serialize_request(*next(wide.requests(SMALL, 6, seed)))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wide.ensure(SMALL, tmp_path_factory.mktemp("zoo"))


def test_every_feature_affects_the_score(small: Path):
    user, items = next(wide.requests(SMALL, 1, seed=1))
    row = {**user, **items[0]}
    left_out = [
        serialize({n: v for n, v in row.items() if n != name}) for name in (None, *SMALL.dtypes)
    ]
    whole, *others = scores(small, left_out)
    assert whole not in others


ME = (sys.modules[__name__],)


def maker(runs: list[Path]) -> Any:
    def make(folder: Path) -> dict[str, Any]:
        runs.append(folder)
        folder.mkdir(parents=True)
        (folder / "saved_model.pb").write_text(f"run {len(runs)}")
        return {"run": len(runs)}

    return make


def test_it_is_made_once_for_its_settings(tmp_path: Path):
    runs: list[Path] = []
    for settings, run in (("16 wide", 1), ("16 wide", 1), ("32 wide", 2)):
        assert cached(tmp_path / "m", ME, maker(runs), settings) == {"run": run}
        assert (tmp_path / "m" / "1" / "saved_model.pb").read_text() == f"run {run}"


def test_a_run_that_fails_halfway_leaves_nothing_to_serve(tmp_path: Path):
    def fail(folder: Path) -> dict[str, Any]:
        maker([])(folder)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cached(tmp_path / "m", ME, fail)
    assert not (tmp_path / "m").exists()
    assert cached(tmp_path / "m", ME, maker([])) == {"run": 1}


def test_another_program_that_makes_it_is_waited_for(tmp_path: Path):
    runs: list[Path] = []
    begun, ended = threading.Event(), threading.Event()

    def slow(folder: Path) -> dict[str, Any]:
        begun.set()
        assert not ended.wait(0.2), "the other one went on"
        return dict(maker(runs)(folder))

    def other():
        begun.wait(60)
        cached(tmp_path / "m", ME, maker(runs))
        ended.set()

    with ThreadPoolExecutor() as pool:
        waits = pool.submit(other)
        assert cached(tmp_path / "m", ME, slow) == {"run": 1}
        waits.result()
    assert len(runs) == 1


@pytest.mark.parametrize(("given", "expected"), [(None, "3"), ("0", "0")])
def test_errors_of_tensorflows_own_are_not_logged_unless_asked_for(
    given: str | None, expected: str
):
    """TensorFlow for GPUs logs a failed call of cuInit as an error, level 2."""
    environment = {name: os.environ[name] for name in os.environ if "TF_CPP" not in name}
    if given:
        environment["TF_CPP_MIN_LOG_LEVEL"] = given
    code = "import colcast.zoo, os; print(os.environ['TF_CPP_MIN_LOG_LEVEL'])"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=60
    )
    assert ran.stdout.strip() == expected
