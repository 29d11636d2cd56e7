"""Trains the ranking model and exports it with a tf.Example signature."""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from colcast.zoo import saving
from colcast.zoo.cache import cached
from colcast.zoo.movielens import data, features, model

WORK_DIR = Path("build/movielens")

# These were tuned on the last fifth of each user's training ratings, never on held-out ratings.
_EPOCHS = 3
_BATCH_SIZE = 512
_LEARNING_RATE = 1e-3
_SEED = 7


@dataclass(frozen=True)
class TrainingReport:
    """The model's quality and its training data."""

    auc: float
    training_rows: int
    held_out_rows: int
    seconds: float


def train(
    dataset: data.MovieLens,
    export_dir: Path,
    *,
    epochs: int = _EPOCHS,
    progress: Callable[[str], None] = print,
) -> TrainingReport:
    """Trains from a fixed seed and writes a SavedModel to `export_dir`."""
    started = time.monotonic()
    tf.keras.utils.set_random_seed(_SEED)
    training, held_out = features.split(dataset)
    progress(f"{len(training):,} ratings to train on, {len(held_out):,} held out")
    vocabularies = model.vocabularies(training)
    encoder = model.Encoder(vocabularies)
    ranker = model.Ranker(encoder.sizes)
    ranker.compile(tf.keras.optimizers.Adam(_LEARNING_RATE), "binary_crossentropy")
    columns, liked = _encode(encoder, training)
    for epoch in range(epochs):
        fitted = ranker.fit(columns, liked, batch_size=_BATCH_SIZE, verbose=0)
        progress(f"epoch {epoch + 1} of {epochs}: loss {fitted.history['loss'][0]:.4f}")
    columns, liked = _encode(encoder, held_out)
    scores = ranker.predict(columns, batch_size=4096, verbose=0)
    saving.save(
        export_dir,
        lambda examples: {"score": ranker(encoder(model.parse(examples)))},
        layers=(encoder, ranker),
    )
    return TrainingReport(
        auc=area_under_curve(scores, liked),
        training_rows=len(training),
        held_out_rows=len(held_out),
        seconds=time.monotonic() - started,
    )


def ensure(
    work_dir: Path, progress: Callable[[str], None] = print
) -> tuple[data.MovieLens, TrainingReport]:
    """The data set and the report of the model in `work_dir`/model/1, trained if missing."""
    dataset = data.load(work_dir)
    facts = cached(
        work_dir / "model",
        (data, features, model, saving, sys.modules[__name__]),
        lambda folder: asdict(train(dataset, folder, progress=progress)),
    )
    return dataset, TrainingReport(**facts)


def area_under_curve(scores: npt.NDArray[Any], positive: npt.NDArray[Any]) -> float:
    """The probability that a positive row scores above a negative one; ties count half."""
    values, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    positives = float(np.sum(positive))
    wins = float(np.sum(ranks[positive.astype(bool)])) - positives * (positives + 1) / 2
    return wins / (positives * (len(values[inverse]) - positives))


def _encode(
    encoder: model.Encoder, impressions: Sequence[features.Impression]
) -> tuple[model.Tensors, npt.NDArray[np.float32]]:
    encoded = encoder(model.tensors(seen.user | seen.item for seen in impressions))
    columns = {name: tensor.numpy() for name, tensor in encoded.items()}
    return columns, np.asarray([seen.rating.liked for seen in impressions], np.float32)
