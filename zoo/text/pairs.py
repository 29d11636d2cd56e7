"""A query joined with each of N titles, as BERT reads a pair: [CLS] query [SEP] title [SEP]."""

from typing import Any, NamedTuple

import tensorflow as tf
from colcast.zoo.text.packed import Segments, segments
from colcast.zoo.text.words import Pieces, WordPieces


class Pairs(NamedTuple):
    """N pairs, packed; the shortest comes first.

    Attributes:
      tokens: int32 [T].
      kinds: int32 [T], 0 up to the query's [SEP], 1 after it.
      where: the rows of each pair.
      back: int32 [N], the position of each title's pair.
    """

    tokens: Any
    kinds: Any
    where: Segments
    back: Any


def pairs(query: Pieces, titles: Pieces, words: WordPieces, longest: int) -> Pairs:
    """Joins one query with every title.

    Args:
      query: the pieces of one text, cut to half of `longest`.
      titles: the pieces of N texts, each cut so that its pair fits.
      words: the vocabulary, for [CLS] and [SEP].
      longest: the maximum number of tokens in a pair.
    """
    asked = tf.minimum(query.lengths[0], longest // 2)
    sizes = tf.minimum(titles.lengths + asked + 3, longest)
    order = tf.argsort(sizes, stable=True)
    where = segments(tf.gather(sizes, order))
    total = tf.size(where.positions)
    # All pairs share the query, so positions before a title are read from the query's pieces.
    pair = tf.minimum(where.text_of, tf.size(sizes) - 1)
    starts = tf.gather(tf.gather(titles.splits[:-1], order), pair)
    second = where.positions >= asked + 2
    source = tf.where(second, asked + starts + where.positions - asked - 2, where.positions - 1)
    known = tf.concat([query.numbers[:asked], titles.numbers, [0]], 0)
    tokens = tf.gather(known, tf.clip_by_value(source, 0, tf.size(known) - 1))
    tokens = tf.where(where.positions == 0, words.cls, tokens)
    tokens = tf.where(where.positions == asked + 1, words.sep, tokens)
    ends = (where.ends - 1)[:, None]
    tokens = tf.tensor_scatter_nd_update(tokens, ends, tf.fill(tf.shape(order), words.sep))
    kinds = tf.cast(tf.logical_and(second, tf.range(total) < total - where.rest), tf.int32)
    return Pairs(tokens, kinds, where, tf.math.invert_permutation(order))
