"""The ranking model: a user tower, an item tower, and a network over both.

`Encoder` turns raw features into ids by lookup tables; `Ranker` holds everything that is trained.
Multi-valued features are [rows, L] tensors padded with -1 (ids) or "" (words).
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from colcast.zoo.movielens.features import Impression, Row

layers = tf.keras.layers

_AGES = [18, 25, 35, 45, 50, 56]
_YEARS = [1930, 1940, 1950, 1960, 1970, 1980, 1985, 1990, 1993, 1994, 1995, 1996, 1997, 1998]
_ZIP_BUCKETS = 128
_MIN_WORD_COUNT = 20  # number of impressions in which a title word must appear

# The spec of the trainer's input pipeline; features that an example may lack have a default.
EXAMPLE_SPEC = {
    "user_id": tf.io.FixedLenFeature([], tf.int64),
    "user_age": tf.io.FixedLenFeature([], tf.int64, default_value=0),
    "user_gender": tf.io.FixedLenFeature([], tf.string, default_value=""),
    "user_occupation": tf.io.FixedLenFeature([], tf.string, default_value=""),
    "user_zip": tf.io.FixedLenFeature([], tf.string, default_value=""),
    "user_liked": tf.io.VarLenFeature(tf.int64),
    "user_mean_rating": tf.io.FixedLenFeature([], tf.float32, default_value=3.5),
    "movie_id": tf.io.FixedLenFeature([], tf.int64),
    "movie_title": tf.io.VarLenFeature(tf.string),
    "movie_year": tf.io.FixedLenFeature([], tf.int64, default_value=0),
    "movie_genres": tf.io.VarLenFeature(tf.string),
    "movie_mean_rating": tf.io.FixedLenFeature([], tf.float32, default_value=3.5),
    "movie_rating_count": tf.io.FixedLenFeature([], tf.int64, default_value=0),
}
_PADDING = {"user_liked": -1, "movie_title": "", "movie_genres": ""}

Tensors = dict[str, Any]


def tensors(rows: Iterable[Row]) -> Tensors:
    """The columns of `rows` (user and item features), as parsing examples would return them."""
    rows = list(rows)
    columns = {}
    for name, spec in EXAMPLE_SPEC.items():
        values = [row[name] for row in rows]
        if name in _PADDING:
            ragged = tf.ragged.constant(values, dtype=spec.dtype)
            columns[name] = ragged.to_tensor(_PADDING[name])
        else:
            columns[name] = tf.constant(values, spec.dtype)
    return columns


def parse(examples: Any) -> Tensors:
    """The columns of serialized tf.Examples, a string tensor [rows]."""
    parsed = tf.io.parse_example(examples, EXAMPLE_SPEC)
    return {
        name: tf.sparse.to_dense(value, default_value=_PADDING[name]) if name in _PADDING else value
        for name, value in parsed.items()
    }


class Encoder(tf.keras.layers.Layer):  # type: ignore[misc]
    """Maps raw columns to ids and floats; 0 is the id of padding, 1 of unknown values."""

    def __init__(self, vocabularies: Mapping[str, list[Any]]) -> None:
        """Takes the values of every looked-up feature; their order determines their ids."""
        super().__init__(name="encoder")
        ids = {"mask_token": -1, "oov_token": -2}
        words = {"mask_token": "", "oov_token": "[UNK]"}
        self.lookups = {
            name: layers.IntegerLookup(vocabulary=np.asarray(values, np.int64), **ids)
            if name.endswith("_id")
            else layers.StringLookup(vocabulary=values, **words)
            for name, values in vocabularies.items()
        }
        self.zip = layers.Hashing(_ZIP_BUCKETS)
        self.age = layers.Discretization(_AGES)
        self.year = layers.Discretization(_YEARS)

    @property
    def sizes(self) -> dict[str, int]:
        """The number of ids of each looked-up feature."""
        return {name: lookup.vocabulary_size() for name, lookup in self.lookups.items()}

    def call(self, columns: Tensors) -> Tensors:
        """The same columns as int64 ids or float32 values."""
        encoded = {name: lookup(columns[name]) for name, lookup in self.lookups.items()}
        return encoded | {
            "user_liked": self.lookups["movie_id"](columns["user_liked"]),
            "user_zip": self.zip(columns["user_zip"]),
            "user_age": self.age(columns["user_age"]),
            "movie_year": self.year(columns["movie_year"]),
            "user_mean_rating": columns["user_mean_rating"],
            "movie_mean_rating": columns["movie_mean_rating"],
            "movie_rating_count": tf.math.log1p(tf.cast(columns["movie_rating_count"], tf.float32)),
        }


def vocabularies(impressions: Iterable[Impression]) -> dict[str, list[Any]]:
    """The values of each looked-up feature in `impressions`, without rare title words."""
    seen: dict[str, dict[Any, int]] = {
        name: {}
        for name in (
            "user_id", "user_gender", "user_occupation", "movie_id", "movie_title", "movie_genres",
        )
    }  # fmt: skip
    for impression in impressions:
        row = impression.user | impression.item
        for name, counts in seen.items():
            value = row[name]
            for one in value if isinstance(value, list) else [value]:
                counts[one] = counts.get(one, 0) + 1
    seen["movie_title"] = {w: n for w, n in seen["movie_title"].items() if n >= _MIN_WORD_COUNT}
    return {name: sorted(counts) for name, counts in seen.items()}


class Ranker(tf.keras.Model):  # type: ignore[misc]
    """Computes the probability of four stars or more, [rows], from encoded columns."""

    def __init__(self, sizes: Mapping[str, int], dropout: float = 0.3, l2: float = 1e-3) -> None:
        """Takes the number of ids of every looked-up feature."""
        super().__init__(name="ranker")

        def table(ids: int, width: int) -> Any:
            return layers.Embedding(ids, width, embeddings_regularizer=tf.keras.regularizers.L2(l2))

        self.movie = table(sizes["movie_id"], 32)  # shared by the candidate and the history
        self.user_tables = {
            "user_id": table(sizes["user_id"], 32),
            "user_gender": table(sizes["user_gender"], 4),
            "user_occupation": table(sizes["user_occupation"], 8),
            "user_zip": table(_ZIP_BUCKETS, 8),
            "user_age": table(len(_AGES) + 1, 8),
        }
        self.title = table(sizes["movie_title"], 16)
        self.genres = table(sizes["movie_genres"], 16)
        self.year = table(len(_YEARS) + 1, 8)
        self.user_tower = _tower([256, 128, 64], dropout)
        self.item_tower = _tower([128, 64], dropout)
        self.top = _tower([128, 64], dropout)
        self.score = layers.Dense(1, activation="sigmoid")

    def call(self, ids: Tensors, training: bool = False) -> Any:
        user = [table(ids[name]) for name, table in self.user_tables.items()]
        user += [_mean(self.movie, ids["user_liked"]), ids["user_mean_rating"][:, None] - 3.5]
        item = [
            self.movie(ids["movie_id"]),
            _mean(self.title, ids["movie_title"]),
            _mean(self.genres, ids["movie_genres"]),
            self.year(ids["movie_year"]),
            ids["movie_mean_rating"][:, None] - 3.5,
            ids["movie_rating_count"][:, None] / 5.0,
        ]
        user = self.user_tower(tf.concat(user, axis=1), training=training)
        item = self.item_tower(tf.concat(item, axis=1), training=training)
        both = self.top(tf.concat([user, item, user * item], axis=1), training=training)
        return tf.squeeze(self.score(both), axis=1)


def _tower(widths: list[int], dropout: float) -> Any:
    steps: list[Any] = []
    for width in widths:
        steps += [layers.Dense(width, activation="relu"), layers.Dropout(dropout)]
    return tf.keras.Sequential(steps)


def _mean(table: Any, ids: Any) -> Any:
    """The mean embedding of each row's ids [rows, L], 0 if there are none; id 0 is padding."""
    present = tf.cast(ids != 0, tf.float32)[:, :, None]
    total = tf.reduce_sum(table(ids) * present, axis=1)
    return total / tf.maximum(tf.reduce_sum(present, axis=1), 1.0)
