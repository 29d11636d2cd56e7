"""SavedModels of the eight models with a tf.Example signature, made once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf
from colcast.zoo import saving
from colcast.zoo.cache import cached
from colcast.zoo.papers import model, networks
from colcast.zoo.papers.model import Columns, PaperModel

SCALE = 0.01  # scale of the tables' rows: 10,000 instead of a million
_SEED = 8


def examples_scorer(paper: PaperModel, network: Any) -> Callable[[Any], Columns]:
    """A function from serialized tf.Examples, a string tensor [rows], to outputs, each [rows]."""
    spec = {feature.name: feature.example_spec for feature in paper.features}

    def serve(examples: Any) -> Columns:
        columns = {
            name: tf.sparse.to_dense(value) if isinstance(value, tf.SparseTensor) else value
            for name, value in tf.io.parse_example(examples, spec).items()
        }
        outputs: Columns = network(columns)
        return outputs

    return serve


def built(paper: PaperModel, scale: float) -> Any:
    """The Keras model with weights from a fixed seed."""
    tf.keras.utils.set_random_seed(_SEED)
    return paper.build(scale)


def ensure(
    paper: PaperModel, scale: float = SCALE, work_dir: Path = Path("build/zoo/papers")
) -> Path:
    """The model's base path; writes the model if it is missing."""
    base_path = work_dir / paper.name

    def make(folder: Path) -> dict[str, Any]:
        network = built(paper, scale)
        saving.save(folder, examples_scorer(paper, network), layers=[network])
        return {"parameters": network.count_params()}

    cached(base_path, (saving, model, networks), make, settings=f"{paper.name} {scale}")
    return base_path
