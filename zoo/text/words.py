"""Converts texts to the numbers of their word pieces, in the graph, with TensorFlow Text's ops.

It works like BERT's uncased tokenizer: lower case, no accents, words and punctuation separated,
each word split into the longest pieces in the vocabulary.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

_BYTES_PER_WORD = 100  # a longer word becomes [UNK]
_CONTROL = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"  # removed; tabs and line ends count as spaces


class Pieces(NamedTuple):
    """The word pieces of N texts, concatenated, without [CLS] and [SEP].

    Attributes:
      numbers: int32 [all pieces].
      splits: int32 [N + 1]; text i has numbers[splits[i]:splits[i + 1]].
    """

    numbers: Any
    splits: Any

    @property
    def lengths(self) -> Any:
        """The number of pieces in each text, int32 [N]."""
        return self.splits[1:] - self.splits[:-1]

    def slices(self, starts: Any, sizes: Any) -> Any:
        """numbers[start:start + size] of every text, concatenated; 0 beyond the ends."""
        count = tf.size(self.numbers)
        source = tf.ragged.range(starts, starts + sizes).flat_values
        inside = tf.logical_and(source >= 0, source < count)
        return tf.gather(tf.pad(self.numbers, [[0, 1]]), tf.where(inside, source, count))


class WordPieces:
    """A vocabulary for use in a graph.

    Attributes:
      cls: the number of [CLS], which begins a text.
      sep: the number of [SEP], which ends one.
    """

    def __init__(self, vocabulary: Sequence[str]) -> None:
        import tensorflow_text  # an op library, imported only to make a graph

        self._normalizer = tensorflow_text.FastBertNormalizer(lower_case_nfd_strip_accents=True)
        self._words = tensorflow_text.FastWordpieceTokenizer(
            vocabulary, max_bytes_per_word=_BYTES_PER_WORD, token_out_type=tf.int32
        )
        self.cls = vocabulary.index("[CLS]")
        self.sep = vocabulary.index("[SEP]")

    def __call__(self, texts: Any) -> Pieces:
        """The pieces of `texts`, a string tensor [N]; skips bytes that are not valid UTF-8."""
        valid = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="ignore")
        seen = tf.strings.regex_replace(valid, _CONTROL, "")
        pieces = self._words.tokenize(self._normalizer.normalize(seen))
        return Pieces(pieces.values, tf.cast(pieces.row_splits, tf.int32))
