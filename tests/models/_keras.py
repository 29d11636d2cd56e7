"""Models of Keras layers, and one of a TensorFlow 1 graph."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf

from ._model import Expected, RankingModel
from ._weights import Features, keras_model
from .saving import save_graph

v1 = tf.compat.v1
layers = tf.keras.layers
Score = Callable[[Features], Any]
TOWERS = {
    "user_id": tf.io.FixedLenFeature([], tf.int64),
    "user_country": tf.io.FixedLenFeature([], tf.string, b"DE"),
    "item_id": tf.io.FixedLenFeature([], tf.int64),
    "item_price": tf.io.FixedLenFeature([2], tf.float32, [1.0, 2.0]),
}
LISTS = {
    "user_history": tf.io.VarLenFeature(tf.int64),
    "item_id": tf.io.FixedLenFeature([], tf.int64),
    "item_tags": tf.io.VarLenFeature(tf.int64),
}
STEPS = {
    "user_steps": tf.io.FixedLenFeature([6], tf.int64),
    "item_id": tf.io.FixedLenFeature([], tf.int64),
}
RAGGED = {
    "user_history": tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64),
    "item_id": tf.io.FixedLenFeature([], tf.int64),
    "item_tags": tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int32),
}
PREPROCESSED = {
    "user_country": tf.io.FixedLenFeature([1], tf.string, b"DE"),
    "user_age": tf.io.FixedLenFeature([1], tf.float32, 30.0),
    "item_id": tf.io.FixedLenFeature([1], tf.int64),
    "item_price": tf.io.FixedLenFeature([1], tf.float32, 1.0),
}
WORDS = [b"red shoes", b"Green hat, small", b"a blue blue coat", b"", b"unheard of"]
TEXT = {
    "user_words": tf.io.FixedLenFeature([], tf.string, b""),
    "item_title": tf.io.FixedLenFeature([], tf.string, b""),
}


def _embedded(f: Features, tables: list[Any]) -> list[Any]:
    """The vectors of user, country and item."""
    country = tf.strings.to_hash_bucket_fast(f["user_country"], 64)
    ids = f["user_id"], country, f["item_id"]
    return [table(each) for table, each in zip(tables, ids, strict=True)]


def pointwise() -> Score:
    tables, norm = _tables(3), layers.BatchNormalization(moving_variance_initializer="uniform")
    first, drop, last = layers.Dense(1024, "relu"), layers.Dropout(0.1), layers.Dense(1)

    def score(f: Features) -> Any:
        both = tf.concat([*_embedded(f, tables), f["item_price"]], 1)
        return last(drop(first(norm(both))))

    return score


def interleaved() -> Score:
    """A ranker that interleaves the user's and the item's columns before a product."""
    tables, norm = _tables(3), layers.BatchNormalization()
    first, last = layers.Dense(32, "relu"), layers.Dense(1)

    def score(f: Features) -> Any:
        user, country, item = _embedded(f, tables)
        return last(first(norm(tf.concat([user, f["item_price"], country, item], 1))))[:, 0]

    return score


def _tables(count: int) -> list[Any]:
    return [layers.Embedding(64, 8, "normal") for _ in range(count)]


def masked_attention() -> Score:
    keys, query = _tables(2)

    def score(f: Features) -> Any:
        history = tf.sparse.to_dense(f["user_history"], -1)
        there, known = history >= 0, keys(tf.maximum(history, 0))
        item = query(f["item_id"])
        logits = tf.reduce_sum(known * item[:, None, :], 2)
        weights = tf.nn.softmax(tf.where(there, logits, -1e9))
        weights = tf.where(there, weights, 0.0)
        return tf.reduce_sum(tf.reduce_sum(known * weights[:, :, None], 1) * item, 1)

    return score


def multi_head_attention() -> Score:
    (table, item), heads = _tables(2), layers.MultiHeadAttention(2, 4)

    def score(f: Features) -> Any:
        history = tf.pad(tf.sparse.to_dense(f["user_history"]), [[0, 0], [1, 0]], constant_values=1)
        query = item(f["item_id"])[:, None, :]
        seen = heads(query, table(history), attention_mask=(history > 0)[:, None, :])
        return tf.reduce_sum(seen * query, [1, 2])

    return score


def gru_in_a_loop() -> Score:
    (table, item), cells = _tables(2), layers.GRU(8)

    def score(f: Features) -> Any:
        state = cells(table(f["user_steps"]), mask=f["user_steps"] > 9)
        return tf.reduce_sum(state * item(f["item_id"]), 1)

    return score


def sparse_lookups() -> Score:
    table, item = tf.Variable(tf.random.stateless_normal([64, 8], [1, 2])), _tables(1)[0]

    def score(f: Features) -> Any:
        pooled = [
            tf.nn.safe_embedding_lookup_sparse(table, f[name], combiner=combiner)
            for name in ("user_history", "item_tags")
            for combiner in ("sum", "mean", "sqrtn")
        ]
        return tf.reduce_sum(tf.add_n(pooled) * item(f["item_id"]), 1)

    return score


def ragged_layers() -> Score:
    table, item = tf.Variable(tf.random.stateless_normal([64, 8], [3, 4])), _tables(1)[0]

    def score(f: Features) -> Any:
        seen = tf.reduce_sum(tf.gather(table, f["user_history"]), 1)
        tags = tf.reduce_sum(tf.gather(table, f["item_tags"]), 1)
        counts = tf.cast(f["item_tags"].row_lengths(), tf.float32)
        return tf.reduce_sum((seen + tags) * item(f["item_id"]), 1) / (1.0 + counts)

    return score


def preprocessing_layers() -> Score:
    country = layers.StringLookup(vocabulary=["DE", "FR"])
    number = layers.IntegerLookup(vocabulary=[3, 5, 8], output_mode="one_hot")
    normal = layers.Normalization(mean=2.0, variance=4.0)
    normal(tf.zeros([1, 1]))  # called outside `score`, so its constants belong to no function
    edges = layers.Discretization([-1.0, 0.0, 1.0], output_mode="one_hot")
    one_hot, hashed = layers.CategoryEncoding(4, "one_hot"), layers.Hashing(16)
    crossed = layers.HashedCrossing(32, output_mode="one_hot")
    last = layers.Dense(1)

    def score(f: Features) -> Any:
        columns = [
            one_hot(country(f["user_country"])),
            number(f["item_id"]),
            normal(f["user_age"]),
            edges(f["item_price"]),
            crossed((f["user_country"], tf.strings.as_string(f["item_id"]))),
            tf.one_hot(tf.squeeze(hashed(f["item_id"]), 1), 16),
        ]
        return last(tf.concat([tf.cast(column, tf.float32) for column in columns], 1))[:, 0]

    return score


def text_vectorization() -> Score:
    vocabulary = ["red", "green", "blue", "hat", "coat"]
    words = layers.TextVectorization(output_sequence_length=4, vocabulary=vocabulary)
    table, last = layers.Embedding(8, 8, "normal"), layers.Dense(1)

    def score(f: Features) -> Any:
        both = tf.concat([table(words(f["user_words"])), table(words(f["item_title"]))], 1)
        return last(tf.nn.relu(tf.reshape(both, [-1, 64])))[:, 0]

    return score


def _save_switched(folder: Path) -> None:
    """A TensorFlow 1 model in which a placeholder of unknown rank turns training on."""
    with tf.Graph().as_default(), v1.Session() as session:
        v1.set_random_seed(3)
        examples = v1.placeholder(tf.string, [None], "examples")
        parsed = v1.parse_example(examples, TOWERS)
        training = v1.placeholder_with_default(False, None, "training")
        table = v1.get_variable("table", [64, 8])
        ids = (tf.gather(table, parsed[name] % 64) for name in ("user_id", "item_id"))
        x = tf.concat([*ids, parsed["item_price"]], 1)
        hidden = tf.nn.relu(tf.matmul(x, v1.get_variable("first", [18, 16])))
        hidden = v1.cond(training, lambda: 0.5 * hidden, lambda: hidden)
        scores = {"score": tf.matmul(hidden, v1.get_variable("last", [16, 1]))}
        session.run(v1.global_variables_initializer())
        signature = v1.saved_model.predict_signature_def({"examples": examples}, scores)
        save_graph(folder, session, {"serving_default": signature})


def _words_row(random: Any) -> dict[str, list[Any]]:
    return {name: [WORDS[random.integers(0, len(WORDS))]] for name in TEXT}


HISTORY = ("user_history",)
REFUSED = Expected.REFUSED
MODELS = [
    keras_model(pointwise, TOWERS, "batch normalisation by moving statistics; one score per row"),
    keras_model(interleaved, TOWERS, "a split product, rows of its kernel in turn"),
    keras_model(masked_attention, LISTS, "softmax over a row's own history", own_length=HISTORY),
    keras_model(multi_head_attention, LISTS, "Keras's attention with a mask", own_length=HISTORY),
    keras_model(gru_in_a_loop, STEPS, "a loop over steps of every row", expected=REFUSED),
    keras_model(sparse_lookups, LISTS, "SparseSegmentMean, Unique of ids, SparseFillEmptyRows"),
    keras_model(ragged_layers, RAGGED, "segment sums by row splits"),
    keras_model(preprocessing_layers, PREPROCESSED, "preprocessing layers of one value per row"),
    keras_model(text_vectorization, TEXT, "RaggedTensorToTensor of one width", row=_words_row),
    RankingModel("switched_off", _save_switched, TOWERS, REFUSED, "a branch that is never taken"),
]
