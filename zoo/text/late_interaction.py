"""Late interaction as a SavedModel: query and titles encoded separately, then compared.

python -m colcast.zoo.text.late_interaction

A title's score adds up each query token's greatest cosine with a title token (MaxSim, as ColBERT
defines it, https://arxiv.org/abs/2004.12832, section 3.3). The encodings of query and title do not
depend on each other, so a server can cache both. Encoding a query, encoding a title and comparing
the two are three stages.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf
from colcast.zoo.cache import VERSION, cached
from colcast.zoo.saving import independent, with_record
from colcast.zoo.text import bert, encoder, packed, weights, words
from colcast.zoo.text.encoder import WORK_DIR

TOKENS = 32  # maximum for a query or a title; longer ones are truncated

v1 = tf.compat.v1


def save(model: weights.MiniLM, folder: Path) -> None:
    """Writes the SavedModel.

    Its signatures are `columnar_late`, from query string [1] and title string [N] to scores float32
    [N]; `columnar`, the same with [N] queries; and the stages `columnar_user`, `columnar_item` and
    `columnar_pair`.
    """
    with tf.Graph().as_default(), v1.Session() as session:
        once = {name: tf.constant(value) for name, value in bert.values(model).items()}
        read = encoder.Encoder(model, once)

        def strings(name: str, rows: int | None = None) -> Any:
            return v1.placeholder(tf.string, [rows], name)

        def whole(queries: int | None) -> Any:
            query, title = strings("query", queries), strings("title")
            (asked,), known = _query(read, query), _title(read, title)
            fed = {"query": query, "title": title}
            return _signature(fed, {"scores": _scores(asked, *known)})

        query, title = strings("query"), strings("title")
        signatures = {
            "columnar": whole(None),
            "columnar_late": whole(1),
            "columnar_user": _signature({"query": query}, _named("user", _query(read, query))),
            "columnar_item": _signature({"title": title}, _named("item", _title(read, title))),
            "columnar_pair": pair_signature(model.width),
        }
        builder = v1.saved_model.Builder(str(folder))
        builder.add_meta_graph_and_variables(session, ["serve"], signatures)
        builder.save()
    parts = {"written": True, "users_per_run": "many"}
    record = {
        "source_input": None,
        "late": {"signature": "columnar_late"},
        "parts": parts,
        "features": {},
        "independence": independent(*signatures),
    }
    with_record(folder, {"columnar": record})


def ensure(work_dir: Path = WORK_DIR) -> Path:
    """The model's base path; writes the model if it is missing."""
    base_path = work_dir / "late_interaction"

    def make(folder: Path) -> dict[str, Any]:
        save(weights.load(work_dir), folder)
        return {}

    cached(base_path, (bert, encoder, packed, weights, words, sys.modules[__name__]), make)
    return base_path


def pair_signature(width: int) -> Any:
    """`columnar_pair` in the default graph: from states with vectors of `width` to scores."""
    states = {
        "user_state/0": v1.placeholder(tf.float32, [None, TOKENS, width]),
        "item_state/0": v1.placeholder(tf.float32, [None, TOKENS, width]),
        "item_state/1": v1.placeholder(tf.float32, [None, TOKENS]),
    }
    rows = {name: v1.placeholder(tf.int64, [None]) for name in ("row_to_user", "user_state/row")}
    user, *items = states.values()
    scores = _scores(tf.gather(user, _of_one_request(*rows.values())), *items)
    signature = _signature({**states, **rows}, {"scores": scores})
    for name in rows:
        signature.defaults[name].CopyFrom(tf.make_tensor_proto([0], tf.int64))
    return signature


def _of_one_request(row_to_user: Any, numbers: Any) -> Any:
    """`row_to_user`, with a check that all users belong to one request.

    If requests are joined, the users' numbers are not 0 to U - 1, and an op refuses them. It
    outputs zeros, which are added so that no optimizer removes the check.
    """
    zero = tf.constant(0, tf.int64)
    zeros = tf.raw_ops.SparseToDense(
        sparse_indices=numbers,
        output_shape=tf.shape(numbers, out_type=tf.int64),
        sparse_values=zero,
        default_value=zero,
    )
    return row_to_user + tf.gather(zeros, row_to_user)


def _query(read: encoder.Encoder, query: Any) -> tuple[Any, ...]:
    """The queries' token vectors [N, TOKENS, width]; zeros, which score 0, after the last token."""
    vectors, _ = read.token_vectors(query, TOKENS)
    return (vectors,)


def _title(read: encoder.Encoder, title: Any) -> tuple[Any, ...]:
    """The titles' token vectors [N, TOKENS, width], and addends to their cosines [N, TOKENS].

    An addend is 0 for a token. After the last token it is -2, so that padding is never nearest.
    """
    vectors, known = read.token_vectors(title, TOKENS)
    return vectors, 2 * (known - 1)


def _scores(query: Any, title: Any, below: Any) -> Any:
    cosines = tf.matmul(query, title, transpose_b=True)  # [N, query's tokens, title's tokens]
    nearest = tf.reduce_max(cosines + below[:, None, :], axis=2)
    asked = tf.reduce_any(tf.not_equal(query, 0), axis=2)
    return tf.reduce_sum(tf.where(asked, nearest, 0.0), axis=1)


def _named(side: str, states: tuple[Any, ...]) -> dict[str, Any]:
    return {f"{side}_state/{number}": state for number, state in enumerate(states)}


def _signature(inputs: dict[str, Any], outputs: dict[str, Any]) -> Any:
    return v1.saved_model.predict_signature_def(inputs, outputs)


def main(argv: Sequence[str] | None = None) -> int:
    """Writes the SavedModel if it is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work-dir", type=Path, default=WORK_DIR)
    print(f"{ensure(parser.parse_args(argv).work_dir)}/{VERSION}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
