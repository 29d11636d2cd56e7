"""The sentence encoder as a SavedModel: from texts to vectors.

python -m colcast.zoo.text.encoder
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from colcast.zoo.cache import VERSION, cached
from colcast.zoo.saving import independent_rows, with_defaults, with_record, with_warmup
from colcast.zoo.text import bert, packed, weights, words
from colcast.zoo.text.packed import Segments, segments
from colcast.zoo.text.words import Pieces

WORK_DIR = Path("build/text")
PRECISIONS = ("float32", "bfloat16")
_SHORTEST = 2  # [CLS] and [SEP]
# oneDNN uses one kernel layout up to 80 rows and another one beyond; both are warmed up.
_WARM_UP = (["a title"], ["a sentence of some words " * count for count in range(1, 17)])


class _Read(NamedTuple):
    """N texts, packed.

    Attributes:
      tokens: int32 [T].
      where: the rows of each text, shortest text first.
      sizes: int32 [N], the number of tokens of each text in the given order.
      back: int32 [N], the position of each given text in the packed order.
    """

    tokens: Any
    where: Segments
    sizes: Any
    back: Any


class Encoder(tf.Module):  # type: ignore[misc]
    """Sentence vectors as sentence-transformers computes them from the same weights."""

    def __init__(self, model: weights.MiniLM, values: bert.Values | None = None) -> None:
        """Takes the model and, for other precisions, the values of `bert.values`."""
        super().__init__()
        self._words = words.WordPieces(model.vocabulary)
        self._bert = bert.Bert(model, values)
        self._longest = model.positions
        self.default_length = model.default_length

    @tf.function(  # type: ignore[untyped-decorator]
        input_signature=[
            tf.TensorSpec([None], tf.string, name="texts"),
            tf.TensorSpec([], tf.int32, name="max_seq_len"),
        ]
    )
    def encode(self, texts: Any, max_seq_len: Any) -> dict[str, Any]:
        """The signature `encode`.

        Args:
          texts: string [N], UTF-8.
          max_seq_len: int32 [], number of tokens to which longer texts are truncated, including
              [CLS] and [SEP].

        Returns:
          embeddings, embeddings/cls, embeddings/max: float32 [N, width] of length 1: the mean of
            a text's token vectors, the vector of its [CLS], the greatest value in each column.
          tokens: int32 [N, L], the numbers of its word pieces, zeros after a shorter text's.
          tokens/length: int32 [N].
        """
        with tf.control_dependencies([self._checked(max_seq_len)]):
            found = self._read(texts, max_seq_len)
        rows, where = self._bert(found.tokens, found.where), found.where
        starts = tf.gather(where.starts, found.back)

        def pooled(pool: Any) -> Any:
            return _unit(tf.gather(pool(rows, where.text_of), found.back))

        return {
            "embeddings": pooled(tf.math.segment_mean),
            "embeddings/cls": _unit(tf.gather(rows, starts)),
            "embeddings/max": pooled(tf.math.segment_max),
            "tokens": _rectangle(found.tokens, starts, found.sizes),
            "tokens/length": found.sizes,
        }

    def vectors(self, texts: list[str]) -> Any:
        """The `embeddings` of texts as an array."""
        return self.encode(tf.constant(texts), self.default_length)["embeddings"].numpy()

    def _read(self, texts: Any, most: Any) -> "_Read":
        pieces = self._words(texts)
        sizes = tf.minimum(pieces.lengths + 2, most)
        order = tf.argsort(sizes, stable=True)
        where = segments(tf.gather(sizes, order))
        tokens = self._tokens(pieces, order, where)
        return _Read(tokens, where, sizes, tf.math.invert_permutation(order))

    def _checked(self, max_seq_len: Any) -> Any:
        return tf.debugging.Assert(
            tf.logical_and(max_seq_len >= _SHORTEST, max_seq_len <= self._longest),
            [f"max_seq_len must be {_SHORTEST} to {self._longest}, got", max_seq_len],
        )

    def _tokens(self, pieces: Pieces, order: Any, where: Segments) -> Any:
        """Every text's [CLS], pieces and [SEP], int32 [T]."""
        first = tf.gather(pieces.splits[:-1], order) - 1
        tokens = where.padded(pieces.slices(first, where.sizes))
        for mark, rows in ((self._words.cls, where.starts), (self._words.sep, where.ends - 1)):
            marks = tf.fill(tf.shape(rows), mark)
            tokens = tf.tensor_scatter_nd_update(tokens, rows[:, None], marks)
        return tokens


def _unit(vectors: Any) -> Any:
    return tf.math.l2_normalize(vectors, axis=1)


def _rectangle(tokens: Any, starts: Any, sizes: Any) -> Any:
    columns = tf.range(tf.reduce_max(tf.concat([sizes, [0]], 0)))
    real = columns < sizes[:, None]
    return tf.where(real, tf.gather(tokens, tf.where(real, starts[:, None] + columns, 0)), 0)


def ensure(work_dir: Path = WORK_DIR, precision: str = "float32") -> Path:
    """The model's base path; writes the model if it is missing.

    Args:
      work_dir: the folder of models and weights.
      precision: precision of the layers' products, one of PRECISIONS.

    Raises:
      RuntimeError: the vectors are too far from float32's.
    """
    base_path = work_dir / ("encoder" if precision == "float32" else f"encoder_{precision}")

    def make(folder: Path) -> dict[str, Any]:
        model = weights.load(work_dir)
        encoder, facts = Encoder(model), {}
        if precision == "bfloat16":
            exact, encoder = encoder, Encoder(model, bert.in_bfloat16(bert.values(model)))
            facts = asdict(check(exact.vectors, encoder.vectors, precision))
        tf.saved_model.save(encoder, str(folder), signatures={"encode": encoder.encode})
        with_defaults(folder, "encode", {"max_seq_len": encoder.default_length})
        with_record(folder, {"encode": independent_rows("encode")})
        with_warmup(folder, "encode", [{"texts": texts} for texts in _WARM_UP], ["embeddings"])
        return facts

    made_by = (bert, packed, weights, words, sys.modules[__name__])
    cached(base_path, made_by, make, settings=precision)
    return base_path


def main(argv: Sequence[str] | None = None) -> int:
    """Writes the SavedModel if it is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work-dir", type=Path, default=WORK_DIR)
    parser.add_argument(
        "--precision",
        choices=PRECISIONS,
        default="float32",
        help="of the layers' products; bfloat16 is faster on CPUs with AVX512_BF16 or AMX",
    )
    args = parser.parse_args(argv)
    base_path = ensure(args.work_dir, args.precision)
    print(
        f"{base_path}/{VERSION}: colcast serve --model_name=encoder --model_base_path={base_path}"
    )
    return 0


LEAST_COSINE = 0.999

Encode = Callable[[list[str]], npt.NDArray[np.float32]]

SENTENCES = [
    "Yes.",
    "cheap flights to lisbon in may",
    "how to reset a forgotten password",
    "The dollar fell against the yen.",
    "Two cups of flour, 250 ml of milk and a pinch of salt",
    "error 0x80070057: the parameter is incorrect",
    "She did not like the film.",
    "She did not dislike the film, although its second half was too long for her.",
    "Heavy rain is expected in the north tonight; the south stays dry.",
    "The court ruled that the contract was void because one side had not signed it.",
    "A proof by induction needs a first case and a step from each case to the next one.",
    "Crude oil rose 3.2 % to $71.40 after ministers agreed to cut output by a tenth from June.",
    "The patient took 5 mg of the drug twice daily and showed no sign of an allergic reaction.",
    "Wireless headphones, black, 30 hours of battery life, a case and three sizes of ear tips",
    "In the second half the home side pressed higher up the pitch, won the ball back in seconds "
    "and scored twice before the visitors, who had led since the tenth minute, had a shot of their "
    "own; the manager said afterwards that nothing but patience had changed.",
    "When the river froze, the traders who used to cross it by boat walked over the ice with their "
    "goods on sledges, and the ferrymen, who had no other work in winter, sold them soup and bread "
    "from a hut on the bank until the first warm days of March, when a red flag was raised and "
    "nobody was let on to the ice any more.",
]


@dataclass(frozen=True)
class Cosine:
    """Cosines between the encoder's vectors of SENTENCES and the exact vectors."""

    least: float
    mean: float


def check(exact: Encode, cheaper: Encode, name: str) -> Cosine:
    """Measures how close the cheaper encoder's vectors are to the exact ones.

    Raises:
      RuntimeError: the least cosine is below LEAST_COSINE.
    """
    cosines = (exact(SENTENCES) * cheaper(SENTENCES)).sum(axis=1)
    found = Cosine(float(cosines.min()), float(cosines.mean()))
    if found.least < LEAST_COSINE:
        raise RuntimeError(
            f"{name}: the cosine to float32's vectors is at least {found.least:.5f}, and "
            f"{found.mean:.5f} on average over {len(SENTENCES)} sentences; expected at least "
            f"{LEAST_COSINE}, so the model is not written"
        )
    return found


if __name__ == "__main__":
    sys.exit(main())
