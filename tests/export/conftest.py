"""Small TensorFlow models that parse tf.Example, and a session that runs exports."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from colcast.export import SignatureReport, export_saved_model
from colcast.loadtest.measure.meters import publishing

from ..models.examples import vocabulary_table
from ..models.saving import save_parser, serialized


def example(**features: Any) -> bytes:
    """A serialized tf.Example: ints, floats, bytes or lists of them by feature name."""
    return serialized(features)


X = {"x": tf.io.FixedLenFeature([], tf.float32)}
EXAMPLES = tf.TensorSpec([None], tf.string, "examples")


def save(folder: Path, takes: Any, score: Any, *resources: Any) -> Path:
    """Saves a model of one signature, which parses features (a dict) or takes tensors (a list)."""
    module = tf.Module()
    module.resources = list(resources)
    if isinstance(takes, dict):
        return save_parser(folder, module, takes, score)
    function = tf.function(score, autograph=False, input_signature=takes)
    tf.saved_model.save(module, str(folder), signatures=function)
    return folder


@pytest.fixture
def exported_report(tmp_path: Path) -> Callable[..., SignatureReport]:
    """Exports a model like `save`'s from `model` to `out`; returns its signature's report."""

    def export(takes: Any, score: Any, *resources: Any, **options: Any) -> SignatureReport:
        model = save(tmp_path / "model", takes, score, *resources)
        (report,) = export_saved_model(model, tmp_path / "out", **options).signatures
        return report

    return export


class Served:
    """A SavedModel loaded as a server loads it: MetaGraph, variables, tables."""

    def __init__(self, session: Any, meta_graph: Any) -> None:
        self.session = session
        self.meta_graph = meta_graph

    def run(self, signature: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """A signature's outputs by name."""
        signature_def = self.meta_graph.signature_def[signature]
        feeds = {signature_def.inputs[name].name: value for name, value in inputs.items()}
        outputs = {name: info.name for name, info in signature_def.outputs.items()}
        return dict(self.session.run(outputs, feeds))


@contextmanager
def served(folder: Path) -> Iterator[Served]:
    """Loads a SavedModel into a session, without Python objects."""
    with tf.Graph().as_default() as graph, tf.compat.v1.Session(graph=graph) as session:
        yield Served(session, tf.compat.v1.saved_model.load(session, ["serve"], str(folder)))


class Embedded(tf.Module):
    """Variables of a small ranking model, and a hash table over a vocabulary file."""

    def __init__(self, vocabulary: Path) -> None:
        super().__init__()
        self.movies = tf.Variable(tf.random.stateless_normal([50, 4], seed=[1, 2]))
        self.genres = tf.Variable(tf.random.stateless_normal([5, 4], seed=[3, 4]))
        self.kernel = tf.Variable(tf.random.stateless_normal([7, 1], seed=[5, 6]))
        self.table = vocabulary_table(vocabulary, "drama", "comedy", "western")

    def score(self, features: Mapping[str, Any]) -> Any:
        """Scores [rows] from a user's age and genres and a movie's id and two numbers."""
        genres = features["user_genres"]
        ids = tf.SparseTensor(genres.indices, self.table.lookup(genres.values), genres.dense_shape)
        liked = tf.nn.safe_embedding_lookup_sparse(self.genres, ids, combiner="mean")
        movie = tf.nn.embedding_lookup(self.movies, features["movie"])
        age = tf.cast(features["user_age"], tf.float32)[:, tf.newaxis]
        numbers = tf.concat([age, features["numbers"], liked], axis=1)
        return tf.squeeze(numbers @ self.kernel, 1) + tf.reduce_sum(liked * movie, 1)


EMBEDDED_SPEC = {
    "user_age": tf.io.FixedLenFeature([], tf.int64, default_value=30),
    "user_genres": tf.io.VarLenFeature(tf.string),
    "movie": tf.io.FixedLenFeature([], tf.int64),
    "numbers": tf.io.FixedLenFeature([2], tf.float32, default_value=[0.5, -2.0]),
}


@pytest.fixture(scope="session")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved model that has the most common kinds of features."""
    folder = tmp_path_factory.mktemp("embedded")
    module = Embedded(folder / "genres.txt")
    return save_parser(folder / "model", module, EMBEDDED_SPEC, tf.function(module.score))


@pytest.fixture
def embedded_examples() -> np.ndarray:
    """Three rows: with all features, with few features, with unknown and repeated genres."""
    rows = [
        example(user_age=25, user_genres=[b"drama", b"western"], movie=3, numbers=[1.0, 2.0]),
        example(movie=49),
        example(user_age=-1, user_genres=[b"opera", b"drama", b"drama"], movie=0),
    ]
    return np.array(rows, object)


@pytest.fixture(scope="session")
def monitoring_flags(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Flags for HTTP with the metrics page."""
    return publishing(tmp_path_factory.mktemp("monitoring"))
