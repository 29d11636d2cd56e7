"""Models with ops that TensorFlow's wheel does not have."""

import re
import shutil
import subprocess
from pathlib import Path

import grpc
import pytest
import tensorflow as tf
import tensorflow_text as text
from colcast.server import ServerProcess, find_executable

from .. import tensorflow_2_15
from ..models.saving import save_version
from .conftest import config_flag
from .servers import Stubs

VOCABULARY = ["[UNK]", "send", "the", "user", "##s", "once", "rank", "every"]
TEXTS = ["send the user once", "", "rank every users", "no  word of\tthese \u00fc"]
LIBRARY = Path(text.__file__).parent / "python" / "ops" / "_whitespace_tokenizer.so"


class Tokens(tf.Module):
    """The WordPiece ids of texts, padded, and their number."""

    def __init__(self):
        super().__init__()
        self.tokenizer = text.FastWordpieceTokenizer(VOCABULARY, token_out_type=tf.int64)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
    def count(self, texts):
        """Ids [rows, most of a row]; -1 is padding."""
        ids = self.tokenizer.tokenize(text.case_fold_utf8(texts))
        return {"ids": ids.to_tensor(-1), "count": ids.row_lengths()}


@pytest.fixture(scope="module")
def tokens(tmp_path_factory):
    """A module, and the base path of its one version."""
    base, module = tmp_path_factory.mktemp("tokens"), Tokens()
    save_version(base / "1", module, module.count)
    return module, base


def rename_op(version, old, new):
    """Changes an op's name, of the same length, wherever the graph has it."""
    assert len(old) == len(new)
    graph = version / "saved_model.pb"
    graph.write_bytes(graph.read_bytes().replace(old.encode(), new.encode()))


UNKNOWN_OPS = {
    "text": ("TFText>OpThatNoVersionOfItHas", ["the installed tensorflow-text"]),
    "forests": ("SimpleMLOpThatNoVersionHas", ["the installed ydf-tf"]),
}


@pytest.fixture(scope="module")
def stubs(tokens, tmp_path_factory):
    """Of a server that loads two models with ops of TF Text side by side, and others."""
    folder = tmp_path_factory.mktemp("models")
    known = "FastWordpieceTokenizeWithOffsets"
    for name, (op, _) in UNKNOWN_OPS.items():
        shutil.copytree(tokens[1] / "1", folder / name / "1")
        rename_op(folder / name / "1", known, op.ljust(len(known), "_"))
    base_paths = {"ranker": tokens[1], "other": tokens[1]}
    base_paths |= {name: folder / name for name in UNKNOWN_OPS}
    config = config_flag(folder / "models.config", base_paths)
    # A library may be named several times.
    library = [f"--op_library={LIBRARY}"] * 2
    with ServerProcess(flags=[config, "--num_load_threads=2", *library]) as server:
        yield Stubs(server.target)


@pytest.mark.parametrize("name", ["ranker", "other"])
def test_ops_of_tf_text_are_found_where_it_is_installed(tokens, stubs, name):
    answer = stubs.predict({"text": TEXTS}, name=name)
    expected = tokens[0].count(tf.constant(TEXTS))
    assert answer["ids"].tolist() == expected["ids"].numpy().tolist()
    assert answer["count"].tolist() == expected["count"].numpy().tolist()


@pytest.mark.parametrize("name", UNKNOWN_OPS)
def test_an_op_that_nobody_has_is_named_with_the_package_that_would(stubs, name):
    op, words = UNKNOWN_OPS[name]
    with pytest.raises(grpc.RpcError) as error:
        stubs.predict({"text": TEXTS}, name=name)
    assert re.match(rf'the op "{op}_*" is not registered', error.value.details())
    assert all(word in error.value.details() for word in words), error.value.details()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("abort();", "a process that loaded it ended with signal 6"),
        ("for (;;) pause();", "a process that loaded it had not ended after 4 s"),
    ],
)
def test_a_library_that_ends_or_stops_the_process_is_named(tmp_path, tokens, body, words):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("a C compiler")
    source, library = tmp_path / "ops.c", tmp_path / "ops.so"
    source.write_text(
        "#include <stdlib.h>\n#include <unistd.h>\n"
        f"__attribute__((constructor)) static void load(void) {{ {body} }}\n"
    )
    subprocess.run([compiler, "-shared", "-fPIC", source, "-o", library], check=True)
    assert words in refusal(tokens[1], library, "--load_check_timeout_seconds=4")


def refusal(base, library, *more):
    """What the server says as it refuses to start with that library."""
    flags = ["--host=127.0.0.1", f"--model_base_path={base}", f"--op_library={library}"]
    command = [find_executable(), *flags, *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert f"the op library {library} cannot be loaded" in done.stderr
    return done.stderr


def test_a_library_that_does_not_load_is_refused_by_name(tmp_path, tokens):
    path = tmp_path / "ops.so"
    path.write_bytes(b"not a library")
    assert "another TensorFlow" not in refusal(tokens[1], path)


def test_a_library_for_another_tensorflow_is_refused_with_both_versions(tokens):
    forests = tensorflow_2_15.package("tensorflow_decision_forests")
    if forests is None:
        pytest.skip("TensorFlow 2.15 and a library for it: make setup-estimator")
    said = refusal(tokens[1], forests / "tensorflow" / "ops" / "inference" / "inference.so")
    assert f"made for another TensorFlow than this server's {tf.__version__}: " in said
    assert "tensorflow_decision_forests 1.8.1 requires tensorflow ~=2.15.0; " in said
    assert "; pip install --no-deps ydf-tf==2." in said
