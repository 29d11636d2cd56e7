"""Models that run until the test lets them go on: they read a file, and to open a pipe waits."""

import os
from pathlib import Path

import tensorflow as tf
from colcast.zoo.record import independent, with_record

from .saving import save_graph

v1 = tf.compat.v1


class Gate:
    """A pipe. A run that reads it waits until it is opened here, and fails: it is no file."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = path

    def is_reached(self) -> bool:
        """Whether a run waits, or is about to."""
        return self.path.with_name(self.path.name + ".reached").exists()

    def open(self) -> None:
        """Lets it go on, as soon as it waits."""
        self.path.write_bytes(b"")


def pass_gate(path: tf.Tensor) -> tf.Tensor:
    """The length of the file, 0."""
    with tf.control_dependencies([tf.io.write_file(tf.strings.join([path, ".reached"]), "")]):
        return tf.cast(tf.strings.length(tf.io.read_file(path)), tf.float32)


def save_items(directory: Path) -> None:
    """A ranker by stages whose item stage reads the file that its first row names.

    The whole model, which answers where a stage fails, does not.
    """
    with tf.Graph().as_default(), v1.Session() as session:

        def columns(prefix: str, names: str, rows: int | None = None) -> dict:
            dtypes = {"age": tf.float32, "id": tf.float32, "path": tf.string}
            return {
                name: v1.placeholder(dtypes[name], [rows], f"{prefix}/{name}")
                for name in names.split()
            }

        def signature(inputs: dict, outputs: dict) -> object:
            return v1.saved_model.predict_signature_def(inputs, outputs)

        user, item = columns("columnar_user", "age"), columns("columnar_item", "id path")
        late_user, late_item = columns("columnar_late", "age", 1), columns("late", "id path")
        pair = {
            "user_state/0": v1.placeholder(tf.float32, [None], "columnar_pair/user"),
            "item_state/0": v1.placeholder(tf.float32, [None], "columnar_pair/item"),
            "row_to_user": v1.placeholder(tf.int64, [None], "columnar_pair/row_to_user"),
        }
        gathered = tf.gather(pair["user_state/0"], pair["row_to_user"])
        signatures = {
            "columnar_user": signature(user, {"user_state/0": 100 * user["age"]}),
            "columnar_item": signature(
                item, {"item_state/0": item["id"] + pass_gate(item["path"][0])}
            ),
            "columnar_pair": signature(pair, {"score": gathered + pair["item_state/0"]}),
            "columnar_late": signature(
                late_user | late_item, {"score": 100 * late_user["age"] + late_item["id"]}
            ),
        }
        save_graph(directory, session, signatures)
    record = {
        "source_input": None,
        "late": {"signature": "columnar_late"},
        "parts": {"written": True, "users_per_run": "many"},
        "features": {},
        "independence": independent(*signatures),
    }
    with_record(directory, {"columnar": record})
