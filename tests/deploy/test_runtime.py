"""The image's runtime layout, made by the Dockerfile's script and run without a container."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text as text
import ydf
from colcast.client import RankingClient
from colcast.server import find_executable

from .. import models

REPOSITORY = Path(__file__).resolve().parents[2]
NOBODY = 65534


def let_all_read(folder: Path) -> None:
    for made in [folder, *folder.glob("**/*")]:
        made.chmod(0o755 if made.is_dir() else 0o644)


@pytest.fixture(scope="module")
def root():
    """A directory, readable by other users, that has the runtime layout and a model."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory)
        path.chmod(0o755)
        build = find_executable().parent.parent
        script = REPOSITORY / "deploy" / "assemble_runtime.sh"
        subprocess.run([script, build, path], check=True)
        models.build("weighted", path / "models/model/1", weight=0.5)
        let_all_read(path / "models")
        yield path


@contextmanager
def started(*command):
    """Starts a server as `nobody` and without environment variables; yields pid and addresses."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        as_nobody = []
    else:
        ids = (f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs")
        as_nobody = ["setpriv", *ids, "--bounding-set=-all"]
    command = ["env", "-i", *as_nobody, *command, "--host=127.0.0.1", "--log_format=json"]
    with subprocess.Popen(command, cwd="/", stderr=subprocess.PIPE, text=True) as process:
        lines = []
        while not lines or "ready: gRPC on" not in lines[-1]:
            lines.append(process.stderr.readline())
            assert lines[-1], "".join(lines)
        message = json.loads(lines[-1])["message"]
        try:
            yield process.pid, *re.search(r"gRPC on (\S+) and HTTP on (\S+)", message).groups()
        finally:  # a test that fails does not wait for the server
            process.terminate()
        process.stderr.read()
        assert process.wait(30) == 0


def test_the_layout_holds_what_the_server_needs_and_nothing_else(root):
    assert sorted(path.name for path in (root / "opt/colcast/bin").iterdir()) == [
        "colcast_model_server",
        "entrypoint",
        "healthcheck",
        f"libcolcast_engine-{tf.__version__}.so",
        "libtensorflow_cc.so.2",
        "libtensorflow_framework.so.2",
    ]
    link = root / "usr/bin/tensorflow_model_server"
    assert link.resolve() == root / "opt/colcast/bin/colcast_model_server"


class Liked(tf.Module):
    """Scores the number of words in a text, using a forest."""

    def __init__(self) -> None:
        super().__init__()
        words = np.arange(200, dtype=np.float32)
        learner = ydf.RandomForestLearner(label="liked", task=ydf.Task.REGRESSION, num_trees=3)
        rows = {"words": words, "liked": words}
        self.forest = learner.train(rows, verbose=0).to_tensorflow_function()
        self.tokenizer = text.WhitespaceTokenizer()

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
    def score(self, texts: tf.Tensor) -> dict[str, tf.Tensor]:
        words = tf.cast(self.tokenizer.tokenize(texts).row_lengths(), tf.float32)
        return {"score": self.forest({"words": words})}


def test_it_has_the_ops_of_tf_text_and_decision_forests(root):
    module = Liked()
    tf.saved_model.save(module, str(root / "models/liked/1"), signatures=module.score)
    let_all_read(root / "models/liked")
    executable = root / "opt/colcast/bin/colcast_model_server"
    flags = ("--port=0", "--rest_api_port=-1", "--model_name=liked")
    with (
        started(executable, *flags, f"--model_base_path={root}/models/liked") as (pid, target, _),
        RankingClient(target, "liked", timeout_seconds=120) as client,
    ):
        items = {"text": ["two words", "now there are four"]}
        scores = client.rank(items=items).scores
        mapped = Path(f"/proc/{pid}/maps").read_text()
    expected = module.score(tf.constant(items["text"]))["score"]
    np.testing.assert_array_equal(scores, expected)
    assert f"{root}/opt/colcast/ydf_tf/inference.so" in mapped
    assert f"{root}/opt/colcast/tensorflow_text/python/ops/_whitespace_tokenizer_v2.so" in mapped


def test_all_other_libraries_are_in_every_debian(root):
    """Other libraries may be only those that apt itself needs: libc, libstdc++, libgcc."""
    outside = set()
    folder = root / "opt/colcast"
    # Op libraries expect that TensorFlow is already loaded.
    environment = {**os.environ, "LD_LIBRARY_PATH": f"{folder}/bin"}
    for file in [folder / "bin/colcast_model_server", *folder.glob("**/*.so*")]:
        command = ["ldd", file]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        listed = done.stdout
        assert "not found" not in listed
        found = re.findall(r"=> (\S+)", listed)
        outside |= {Path(path).name for path in found if not path.startswith(str(root))}
    allowed = r"(libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+)\.so\.\d"
    assert outside
    assert all(re.match(allowed, name) for name in outside), outside


@pytest.mark.parametrize(
    ("environment", "flags"),
    [
        ("GRPC_PORT=0 PORT=-1 MODEL_BASE_PATH={root}/models MODEL_NAME=model", ""),
        (  # flags win
            "GRPC_PORT=1 MODEL_NAME=none",
            "--port=0 --rest_api_port=-1 --model_name=model --model_base_path={root}/models/model",
        ),
    ],
    ids=["environment", "flags"],
)
def test_it_serves_as_nobody_with_the_environment_of_tensorflow_servings_image_or_flags(
    root, environment, flags
):
    variables, given = (text.format(root=root).split() for text in (environment, flags))
    entry_point, check = (
        root / "usr/bin/tf_serving_entrypoint.sh",
        root / "opt/colcast/bin/healthcheck",
    )
    with (
        started("env", *variables, entry_point, *given) as (pid, target, http_target),
        RankingClient(target, "model", timeout_seconds=120) as client,
    ):
        scores = client.rank(items=[{"x": np.float32(3)}, {"x": np.float32(5)}]).scores
        np.testing.assert_array_equal(scores, [1.5, 2.5])
        maps = Path(f"/proc/{pid}/maps").read_text()
        assert "opt/colcast/bin/libtensorflow_cc.so.2" in maps
        assert str(REPOSITORY) not in maps
        if os.geteuid() == 0:  # otherwise it runs as this user
            status = Path(f"/proc/{pid}/status").read_text()
            assert re.search(rf"Uid:\s+{NOBODY}\s+{NOBODY}", status)
            assert re.search(r"CapEff:\s+0+\n", status)
        for port, alive in ((http_target.rpartition(":")[2], True), ("1", False)):
            done = subprocess.run(["env", "-i", check, port], timeout=120, capture_output=True)
            assert (done.returncode == 0) == alive
