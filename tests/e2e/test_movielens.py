"""End to end: a model for real users is exported, served and used for ranking; logs are reused."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from colcast.client import RankingClient
from colcast.export import export_saved_model
from colcast.server import ServerProcess
from colcast.zoo.columnar import columnar
from colcast.zoo.examples import serialize_request
from colcast.zoo.movielens import train
from colcast.zoo.movielens.features import Candidates

from ..models import ranker

MODEL = "movielens"


def test_examples_are_columnized_with_the_user_found_and_sent_once():
    data, _ = train.ensure(train.WORK_DIR)
    request = Candidates(data).of(405)  # the movies that the user has not rated
    examples = serialize_request(request.user_row, request.items)
    with (
        ServerProcess(MODEL, columnar(train.WORK_DIR / "model", late=True)) as server,
        RankingClient(server.target, MODEL, timeout_seconds=120) as client,
    ):
        once = client.encode(examples=examples, target="columnar")
        assert len(once) < len(client.encode(examples=examples, target="example")) / 2
        np.testing.assert_array_equal(
            client.predict_examples(examples, target="columnar").scores,
            client.predict_examples(examples, target="example").scores,
        )


COLCAST = Path(sys.executable).with_name("colcast")
REQUESTS, ROWS = 6, len(ranker.ITEMS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with `model`, its export `ranker/1`, and `logs` with some requests."""
    folder = tmp_path_factory.mktemp("logged")
    ranker.save(folder / "model")
    export_saved_model(
        folder / "model", folder / "ranker" / "1", user_features=["user_*"], late=True
    )
    (folder / "logs").mkdir()
    config = folder / "models.config"
    config.write_text(
        f"""
        model_config_list {{ config {{
            name: "ranker" base_path: "{folder}/ranker" model_platform: "tensorflow"
            logging_config {{
                log_collector_config {{ type: "file" filename_prefix: "{folder}/logs/ranker" }}
                sampling_config {{ sampling_rate: 1.0 }}
            }}
        }} }}
        """
    )
    with (
        ServerProcess(flags=[f"--model_config_file={config}"]) as server,
        RankingClient(server.target, "ranker", timeout_seconds=60) as client,
    ):
        for age in range(REQUESTS):
            user = ranker.USER | {"user_age": 20 + age}
            client.rank(user, ranker.ITEMS, target="columnar" if age % 2 else "late")
    return folder


@pytest.fixture(scope="module")
def log(folder) -> Path:
    (file,) = (folder / "logs").iterdir()
    return file


def test_an_export_is_proved_with_it_and_finds_the_users_features(folder, log, tmp_path):
    report = export_saved_model(
        folder / "model", tmp_path / "1", user_features=["auto"], examples=log, late=True
    )
    (signature,) = report.signatures
    assert signature.parity.recorded_rows == REQUESTS * ROWS
    assert signature.parity.identical
    user = {feature.name for feature in signature.features if str(feature.side) == "user"}
    assert user == {"user_age", "user_words"}


def test_a_load_test_sends_it_again_in_every_format(folder, log, tmp_path):
    with ServerProcess("ranker", folder / "ranker") as server:
        options = {
            "target": server.target,
            "model": "ranker",
            "traffic": f"requests:{log}",
            "formats": "recorded,example,columnar,late",
            "clients": "1",
            "windows": "1",
            "seconds": "0.2",
            "max-errors": "0",
            "output": str(tmp_path),
        }
        command = [COLCAST, "loadtest", *(f"--{name}={it}" for name, it in options.items())]
        done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_server_is_warmed_up_with_it(folder, log, tmp_path):
    shutil.copytree(folder / "ranker" / "1", tmp_path / "1")
    shutil.copy(log, tmp_path / "1" / "assets.extra" / "tf_serving_warmup_requests")
    with ServerProcess("ranker", tmp_path) as server:
        assert f"warmed up with {REQUESTS} requests" in server.log()
