"""Models that preprocess their features."""

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
SPEC = {
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


COLUMNS = {
    "user_age": tf.io.FixedLenFeature([1], tf.float32, 30.0),
    "user_countries": tf.io.VarLenFeature(tf.string),
    "item_id": tf.io.FixedLenFeature([1], tf.int64),
    "item_shops": tf.io.VarLenFeature(tf.int64),
}


def _feature_columns() -> list[Any]:
    """Feature columns of the kinds that Estimators use."""
    column = tf.feature_column
    age = column.numeric_column("user_age")
    ages = column.bucketized_column(age, [-1.0, 0.5, 2.0])
    words = ["DE", "FR", "IT"]
    countries = column.categorical_column_with_vocabulary_list("user_countries", words)
    item = column.categorical_column_with_hash_bucket("item_id", 20, tf.int64)
    shops = column.categorical_column_with_identity("item_shops", 64, 0)
    return [
        age,
        ages,
        column.embedding_column(countries, 4, combiner="sqrtn"),
        column.embedding_column(item, 4),
        column.indicator_column(shops),
        column.embedding_column(column.crossed_column([ages, "user_countries"], 30), 4),
    ]


def _save_feature_columns(folder: Path) -> None:
    """Saves the model in graph mode, like an Estimator."""
    with tf.Graph().as_default(), v1.Session() as session:
        v1.set_random_seed(3)
        examples = v1.placeholder(tf.string, [None], "examples")
        parsed = v1.parse_example(examples, COLUMNS)
        deep = v1.feature_column.input_layer(parsed, _feature_columns())
        kernel = v1.get_variable("kernel", [deep.shape[1], 1])
        scores = {"score": tf.sigmoid(deep @ kernel)}
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        signature = v1.saved_model.predict_signature_def({"examples": examples}, scores)
        initializer = v1.tables_initializer()
        save_graph(folder, session, {"serving_default": signature}, main_op=initializer)


def _words_row(random: Any) -> dict[str, list[Any]]:
    return {name: [WORDS[random.integers(0, len(WORDS))]] for name in TEXT}


MODELS = [
    keras_model(preprocessing_layers, SPEC, "preprocessing layers of one value per row"),
    keras_model(text_vectorization, TEXT, "RaggedTensorToTensor of one width", row=_words_row),
    RankingModel(
        "feature_columns",
        _save_feature_columns,
        COLUMNS,
        Expected.INDEPENDENT,
        "columns as Estimators have them, crossed ones too",
        own_length=("item_shops",),
    ),
]
