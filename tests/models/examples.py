"""Small models that parse tf.Examples, each with a different feature, graph or API."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from ._model import Expected, RankingModel
from .saving import save_graph, save_parser

v1 = tf.compat.v1
Random = np.random.Generator
Spec = Mapping[str, Any]
WORDS = [b"red", b"green", b"blue", b"unheard of", "größe".encode(), b""]


def row_of(spec: Spec, random: Random) -> dict[str, list[Any]]:
    """Random features that fit a spec; ids stay below 8."""
    row = {}
    for name, feature in spec.items():
        if isinstance(feature, tf.io.FixedLenFeature):
            if feature.default_value is not None and random.random() < 0.2:
                continue
            count = int(np.prod(feature.shape, dtype=int))
        else:
            inner = getattr(feature, "shape", [])
            count = int(random.integers(0, 5)) * int(np.prod(inner, dtype=int))
            if count == 0 and random.random() < 0.5:
                continue
        row[name] = values(feature.dtype, count, random)
    return row


def values(dtype: Any, count: int, random: Random) -> list[Any]:
    if dtype == tf.int64:
        return random.integers(0, 8, count).tolist()
    if dtype == tf.float32:
        return random.normal(size=count).astype(np.float32).tolist()
    return [WORDS[i] for i in random.integers(0, len(WORDS), count)]


def weight(*shape: int, seed: int = 0) -> Any:
    """A variable whose random values are the same in every run."""
    return tf.Variable(tf.random.stateless_normal(shape, seed=[seed, 1]))


# --- tf.Module -------------------------------------------------------------------------------

NESTED = {
    "age": tf.io.FixedLenFeature([], tf.int64, default_value=30),
    "numbers": tf.io.FixedLenFeature([2, 3], tf.float32, default_value=[[1, 2, 3], [4, 5, 6]]),
    "color": tf.io.FixedLenFeature([1], tf.string, default_value=b"none"),
    "bytes": tf.io.FixedLenFeature([], tf.string, default_value=b"\0ab\0\0"),
}


def build_nested(folder: Path) -> None:
    """Nests three functions, each of which has its own variables."""
    module = tf.Module()
    module.kernel, module.buckets = weight(6, 4), weight(10, 4, seed=1)

    @tf.function
    def dense(x: Any) -> Any:
        return tf.nn.relu(tf.reshape(x, [-1, 6]) @ module.kernel)

    @tf.function
    def hashed(words: Any) -> Any:
        return tf.gather(module.buckets, tf.strings.to_hash_bucket_fast(tf.squeeze(words, 1), 10))

    @tf.function
    def score(features: Any) -> Any:
        both = dense(features["numbers"]) * hashed(features["color"])
        lengths = tf.strings.length(features["bytes"])
        return tf.reduce_sum(both, 1) + tf.cast(
            features["age"] + tf.cast(lengths, tf.int64), "float"
        )

    save_parser(folder, module, NESTED, score)


TABLE = {
    "colors": tf.io.VarLenFeature(tf.string),
    "best": tf.io.FixedLenFeature([], tf.string),
}


def vocabulary_table(file: Path, *words: str) -> Any:
    """Writes a vocabulary file; returns a table of its words and two extra buckets."""
    file.write_text("".join(f"{word}\n" for word in words))
    of_lines = tf.lookup.TextFileInitializer(
        str(file),
        tf.string,
        tf.lookup.TextFileIndex.WHOLE_LINE,
        tf.int64,
        tf.lookup.TextFileIndex.LINE_NUMBER,
    )
    return tf.lookup.StaticVocabularyTable(of_lines, num_oov_buckets=2)


def build_table(folder: Path) -> None:
    """Looks up words in a vocabulary file and in a table whose keys are in the graph."""
    module = tf.Module()
    module.file = vocabulary_table(folder.with_suffix(".txt"), "red", "green", "blue")
    module.keys = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(["red", "blue"], [0.5, -2.5]), 0.25
    )
    module.embedding = weight(5, 3)

    def score(features: Any) -> Any:
        colors = features["colors"]
        ids = tf.SparseTensor(colors.indices, module.file.lookup(colors.values), colors.dense_shape)
        pooled = tf.nn.safe_embedding_lookup_sparse(module.embedding, ids, combiner="mean")
        return tf.reduce_sum(pooled, 1) + module.keys.lookup(features["best"])

    save_parser(folder, module, TABLE, score)


COMBINERS = {
    "ids": tf.io.VarLenFeature(tf.int64),
    "weighted": tf.io.SparseFeature("at", "weight", tf.float32, size=8),
}


def combiners_row(random: Random) -> dict[str, list[Any]]:
    """Random ids; random positions with one weight each."""
    count = int(random.integers(0, 5))
    at = sorted(random.choice(8, count, replace=False).tolist())
    row = row_of({"ids": COMBINERS["ids"]}, random)
    return {**row, "at": at, "weight": values(tf.float32, count, random)}


def build_combiners(folder: Path) -> None:
    """Embeds sparse ids with every combiner, and a crossed feature."""
    module = tf.Module()
    module.embedding, module.wide = weight(8, 4), weight(8, 1, seed=1)

    def score(features: Any) -> Any:
        pooled = [
            tf.nn.safe_embedding_lookup_sparse(module.embedding, features["ids"], combiner=combiner)
            for combiner in ("sum", "mean", "sqrtn")
        ]
        wide = tf.sparse.sparse_dense_matmul(features["weighted"], module.wide)
        return tf.reduce_sum(tf.concat(pooled, 1), 1) + tf.squeeze(wide, 1)

    save_parser(folder, module, COMBINERS, score)


RAGGED = {
    "tags": tf.io.RaggedFeature(tf.string, row_splits_dtype=tf.int64),
    "ids": tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int32),
    "by_splits": tf.io.RaggedFeature(
        tf.float32, "v", [tf.io.RaggedFeature.RowSplits("splits")], row_splits_dtype=tf.int64
    ),
    "by_lengths": tf.io.RaggedFeature(
        tf.float32, "v", [tf.io.RaggedFeature.RowLengths("lengths")], row_splits_dtype=tf.int64
    ),
    "by_rowids": tf.io.RaggedFeature(
        tf.float32, "v", [tf.io.RaggedFeature.ValueRowIds("rowids")], row_splits_dtype=tf.int64
    ),
    "by_pairs": tf.io.RaggedFeature(
        tf.float32, "v", [tf.io.RaggedFeature.UniformRowLength(2)], row_splits_dtype=tf.int64
    ),
}


def ragged_row(random: Random) -> dict[str, list[Any]]:
    """Values, with row partitions of every kind."""
    lengths = (2 * random.integers(0, 3, int(random.integers(0, 4)))).tolist()
    splits = [0, *np.cumsum(lengths, dtype=int).tolist()]
    flat = row_of({"tags": RAGGED["tags"], "ids": RAGGED["ids"]}, random)
    return {
        **flat,
        "v": values(tf.float32, splits[-1], random),
        "splits": splits,
        "lengths": lengths,
        "rowids": np.repeat(np.arange(len(lengths)), lengths).tolist(),
    }


def build_ragged(folder: Path) -> None:
    """Ragged features with every kind of partition; to the parse op, a partition is a feature."""
    module = tf.Module()
    module.embedding = weight(8, 2)

    def score(features: Any) -> Any:
        total = tf.reduce_sum(tf.strings.length(features["tags"]), 1)
        embedded = tf.gather(module.embedding, features["ids"])
        scores = tf.cast(total, tf.float32) + tf.reduce_sum(embedded, [1, 2])
        for name in RAGGED:
            if name.startswith("by_"):
                rows = tf.reduce_max(features[name] ** 2, axis=2).with_row_splits_dtype(tf.int64)
                scores += tf.reduce_sum(tf.where(tf.math.is_finite(rows), rows, 0 * rows), 1)
        return scores

    save_parser(folder, module, RAGGED, score)


PAIRS = {
    "user_pairs": tf.io.RaggedFeature(
        tf.float32, "user_pairs", [tf.io.RaggedFeature.UniformRowLength(2)]
    ),
    "price": tf.io.FixedLenFeature([], tf.float32),
}


def pairs_row(random: Random) -> dict[str, list[Any]]:
    """An even number of values, as the model needs."""
    pairs = values(tf.float32, 2 * int(random.integers(0, 4)), random)
    return {"user_pairs": pairs, "price": values(tf.float32, 1, random)}


def build_pairs(folder: Path) -> None:
    """Reshapes a user's numbers into pairs; fails on an odd number of values."""
    module = tf.Module()
    module.scale = weight(1)

    def score(features: Any) -> Any:
        pairs = features["user_pairs"].to_tensor()
        return tf.tanh(tf.reduce_sum(pairs, [1, 2])) * features["price"] * module.scale

    save_parser(folder, module, PAIRS, score)


CONTROL = {
    "x": tf.io.FixedLenFeature([3], tf.float32),
    "steps": tf.io.FixedLenFeature([], tf.int64),
}


def build_control_flow(folder: Path) -> None:
    """A branch and a loop on the item side, as TensorFlow 2 functions."""
    module = tf.Module()
    module.kernel = weight(3, 3)

    @tf.function
    def score(features: Any) -> Any:
        x = features["x"]
        if tf.reduce_sum(x) > 0.0:
            x = x @ module.kernel
        for step in tf.range(tf.minimum(tf.reduce_max(features["steps"]), 9)):
            x = tf.where((features["steps"] > step)[:, tf.newaxis], tf.tanh(x @ module.kernel), x)
        return tf.reduce_sum(x, 1)

    save_parser(folder, module, CONTROL, score)


PROTO = {"blob": tf.io.FixedLenFeature([], tf.string)}


def proto_row(random: Random) -> dict[str, list[Any]]:
    """A row whose only feature is a serialized message."""
    listed = tf.train.FloatList(value=values(tf.float32, 3, random))
    return {"blob": [listed.SerializeToString()]}


def build_decode_proto(folder: Path) -> None:
    """Decodes a message inside a feature by tf.io.decode_proto."""
    module = tf.Module()
    module.kernel = weight(3, 1)

    def score(features: Any) -> Any:
        decoded = tf.io.decode_proto(
            features["blob"], "tensorflow.FloatList", ["value"], [tf.float32]
        )
        return tf.squeeze(decoded.values[0] @ module.kernel, 1)

    save_parser(folder, module, PROTO, score)


# --- Keras -----------------------------------------------------------------------------------

KERAS = {
    "color": tf.io.FixedLenFeature([1], tf.string),
    "id": tf.io.FixedLenFeature([1], tf.int64),
    "price": tf.io.FixedLenFeature([1], tf.float32, default_value=[0.5]),
}


class TwoTowers(tf.keras.Model):
    """A subclassed model that parses, preprocesses and scores."""

    def __init__(self) -> None:
        super().__init__()
        self.colors = tf.keras.layers.StringLookup(vocabulary=["red", "green", "blue"])
        self.user = tf.keras.layers.Embedding(5, 4)
        self.item = tf.keras.layers.Embedding(8, 4)

    def call(self, features: Any) -> Any:
        """The towers' dot product, plus the price."""
        user = self.user(self.colors(features["color"]))
        return tf.reduce_sum(user * self.item(features["id"]), [1, 2]) + features["price"][:, 0]


def build_keras(folder: Path) -> None:
    """Saves the model with a signature that parses tf.Examples."""
    tf.keras.utils.set_random_seed(0)
    model = TwoTowers()
    model({"color": tf.constant([["red"]]), "id": tf.constant([[1]]), "price": tf.zeros([1, 1])})
    save_parser(folder, model, KERAS, model)


SEQUENCE = {
    "history": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
    "points": tf.io.FixedLenSequenceFeature([2], tf.float32, allow_missing=True),
}


def build_recurrent(folder: Path) -> None:
    """A recurrent layer over sequences of any length."""
    tf.keras.utils.set_random_seed(0)
    model = tf.keras.Sequential([tf.keras.layers.Embedding(8, 4), tf.keras.layers.GRU(5)])
    model.build([None, None])

    def score(features: Any) -> Any:
        # The recurrent layer needs at least one step.
        first = tf.pad(features["history"], [[0, 0], [0, 1]])
        return tf.reduce_sum(model(first), 1) + tf.reduce_sum(features["points"], [1, 2])

    save_parser(folder, model, SEQUENCE, score)


# --- TensorFlow 1 ----------------------------------------------------------------------------

FLAT = {
    "id": tf.io.FixedLenFeature([], tf.int64),
    "numbers": tf.io.FixedLenFeature([2], tf.float32, default_value=[0.5, 1.5]),
    "ids": tf.io.VarLenFeature(tf.int64),
}


def build_flat_graph(folder: Path) -> None:
    """A TensorFlow 1 graph: the old parse op, resource variables, a table, Switch and Merge."""
    v1.disable_control_flow_v2()
    try:
        with tf.Graph().as_default(), v1.Session() as session:
            _flat_graph(session, folder)
    finally:
        v1.enable_control_flow_v2()


def _flat_graph(session: Any, folder: Path) -> None:
    examples = v1.placeholder(tf.string, [None], name="examples")
    parsed = tf.raw_ops.ParseExample(
        serialized=examples,
        names=[],
        sparse_keys=["ids"],
        dense_keys=["id", "numbers"],
        dense_defaults=[tf.constant([], tf.int64), tf.constant([0.5, 1.5])],
        sparse_types=[tf.int64],
        dense_shapes=[[], [2]],
    )
    ids = tf.SparseTensor(
        parsed.sparse_indices[0], parsed.sparse_values[0], parsed.sparse_shapes[0]
    )
    number, numbers = parsed.dense_values
    table = v1.get_variable("table", [8, 3], initializer=v1.random_normal_initializer(seed=1))
    kernel = v1.get_variable(
        "kernel", [3, 3], initializer=v1.random_normal_initializer(seed=2), use_resource=True
    )
    pooled = v1.nn.safe_embedding_lookup_sparse(table, ids, combiner="sum")
    names = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(tf.range(4, dtype=tf.int64), [1.0, 2.0, 3.0, 4.0]), 0.0
    )
    with tf.control_dependencies([v1.assert_greater_equal(number, tf.constant(0, tf.int64))]):
        looked_up = names.lookup(number)
    x = v1.cond(tf.reduce_sum(numbers) > 0.0, lambda: pooled @ kernel, lambda: pooled - 1.0)
    _, x = v1.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, tf.tanh(y @ kernel)), (0, x))
    scores = tf.reduce_sum(x, 1) + looked_up + tf.reduce_sum(numbers, 1)
    session.run([v1.global_variables_initializer(), v1.tables_initializer()])
    signature = v1.saved_model.predict_signature_def({"examples": examples}, {"scores": scores})
    save_graph(
        folder,
        session,
        {"serving_default": signature},
        main_op=v1.tables_initializer(),
        strip_default_attrs=True,
    )


def _model(
    name: str, build: Callable[[Path], None], spec: Spec, user: str, expected: Expected, **more: Any
) -> RankingModel:
    why = (build.__doc__ or "").splitlines()[0]
    more.setdefault("row", partial(row_of, spec))
    return RankingModel(f"export_{name}", build, spec, expected, why, (user,), **more)


INDEPENDENT, INTERACTING, REFUSED = Expected.INDEPENDENT, Expected.INTERACTING, Expected.REFUSED
PAIRS_MODEL = _model("pairs", build_pairs, PAIRS, "user_*", REFUSED, row=pairs_row, recorded=True)
MODELS = [
    _model("nested_functions", build_nested, NESTED, "age", INDEPENDENT),
    _model("vocabulary_file_and_table", build_table, TABLE, "colors", INDEPENDENT),
    _model("sparse_combiners", build_combiners, COMBINERS, "ids", REFUSED, row=combiners_row),
    # A request's own splits may reach into the values of the next row.
    _model("ragged_partitions", build_ragged, RAGGED, "ids", INTERACTING, row=ragged_row),
    _model("branch_and_loop", build_control_flow, CONTROL, "steps", INTERACTING),
    _model("keras_subclass", build_keras, KERAS, "color", INDEPENDENT, users_per_run="one"),
    _model("sequence_recurrent", build_recurrent, SEQUENCE, "history", Expected.LENGTH),
    _model("flat_graph", build_flat_graph, FLAT, "id", INTERACTING),
]
NOT_RANKED = [
    _model("decode_proto", build_decode_proto, PROTO, "*", INDEPENDENT, row=proto_row),
    PAIRS_MODEL,
]
