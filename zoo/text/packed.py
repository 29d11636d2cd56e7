"""The tokens of many texts as the rows of one matrix, and attention within each text.

Products over the rows of a packed matrix compute no padding, however much lengths differ. Only
attention, which multiplies the tokens of a text with each other, needs rectangles: it processes a
few texts of similar length at a time. A single text is its own rectangle.

Sizes are rounded up slightly, because oneDNN compiles and keeps a product for every new shape: at
most 3 filler rows per batch, or 1 in 32 if that is more, and at most 7 columns per rectangle beyond
its longest text.
"""

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

_COLUMNS = 8  # a rectangle's width is a multiple of this
_GROUP = 16  # number of texts in one rectangle
_NEVER = -1e9  # added to the weight of a key that belongs to no text

_FEW_ROWS = range(0, 128, 4)
_MANY_ROWS = [rows << power for power in range(2, 26) for rows in range(32, 64)]
_ROWS = np.array([*_FEW_ROWS, *_MANY_ROWS], np.int32)  # the allowed numbers of rows in a batch


class Segments(NamedTuple):
    """The position of N texts among T rows; the shortest text comes first.

    Attributes:
      starts: int32 [N], the first row of each text.
      sizes: int32 [N], the number of rows of each text, ascending.
      positions: int32 [T], the position of each row in its text; 0 for filler rows.
      unreal: float32 [T], 0 in rows of texts and -1e9 in filler rows.
      rest: int32 [], the number of filler rows, which follow the last text.
    """

    starts: Any
    sizes: Any
    positions: Any
    unreal: Any
    rest: Any

    @property
    def ends(self) -> Any:
        """The row after the last row of each text, int32 [N]."""
        return self.starts + self.sizes

    @property
    def text_of(self) -> Any:
        """The index of each row's text, int32 [T]; N in filler rows."""
        return tf.searchsorted(self.ends, tf.range(tf.size(self.positions)), side="right")

    def padded(self, rows: Any) -> Any:
        """The texts' rows [T - rest], padded with zeros to [T]."""
        return tf.pad(rows, [[0, self.rest]])


def segments(sizes: Any) -> Segments:
    """Arranges texts of these sizes, int32 [N] and ascending, one after another."""
    total = tf.reduce_sum(sizes)
    rest = tf.gather(_ROWS, tf.searchsorted(_ROWS, total[None])[0]) - total
    positions = tf.pad(tf.ragged.range(sizes).flat_values, [[0, rest]])
    unreal = tf.concat([tf.zeros([total]), tf.fill([rest], _NEVER)], 0)
    return Segments(tf.cumsum(sizes, exclusive=True), sizes, positions, unreal, rest)


def attention(rows: Any, where: Segments, heads: int) -> Any:
    """The mean of the values in each row's own text, weighted by query and key.

    Args:
      rows: [T, 3 * width], queries (already divided by the root of a head's width), keys and
        values of all heads side by side.
      where: the texts.
      heads: the number of heads.

    Returns:
      [T, width].
    """
    return tf.cond(
        tf.equal(tf.size(where.sizes), 1),
        lambda: _of_one(rows, where, heads),
        lambda: _of_many(rows, where, heads),
    )


def _of_one(rows: Any, where: Segments, heads: int) -> Any:
    """Attention within one text, whose rows already are its rectangle."""
    width = rows.shape[1] // 3
    by_head = tf.transpose(tf.reshape(rows, [-1, 3 * heads, width // heads]), [1, 0, 2])
    return tf.reshape(tf.transpose(_mixed(by_head, where.unreal), [1, 0, 2]), [-1, width])


def _of_many(rows: Any, where: Segments, heads: int) -> Any:
    """Attention within many texts, `_GROUP` of similar length at a time."""
    count, width = tf.size(where.sizes), rows.shape[1] // 3
    groups = (count + _GROUP - 1) // _GROUP
    done = tf.TensorArray(
        rows.dtype, groups + 1, infer_shape=False, element_shape=[None, width]
    ).write(groups, tf.zeros([where.rest, width], rows.dtype))

    def group(number: Any, done: Any) -> Any:
        some = slice(number * _GROUP, tf.minimum((number + 1) * _GROUP, count))
        mixed = _rectangle(rows, where.starts[some], where.sizes[some], heads)
        return number + 1, done.write(number, mixed)

    _, done = tf.while_loop(lambda number, _: number < groups, group, (0, done))
    return done.concat()


def _rectangle(rows: Any, starts: Any, sizes: Any, heads: int) -> Any:
    """Attention within a few texts: arranges their rows as [texts, columns], and back."""
    columns = (sizes[-1] + _COLUMNS - 1) // _COLUMNS * _COLUMNS
    real = tf.range(columns) < sizes[:, None]
    numbers = tf.where(real, starts[:, None] + tf.range(columns), starts[:, None])
    width = rows.shape[1] // 3
    apart = tf.reshape(tf.gather(rows, numbers), [-1, columns, 3 * heads, width // heads])
    unreal = tf.where(real, 0.0, _NEVER)[None, :, None, :]
    mixed = _mixed(tf.transpose(apart, [2, 0, 1, 3]), unreal)
    rows = tf.reshape(tf.transpose(mixed, [1, 2, 0, 3]), [-1, columns, width])
    return tf.boolean_mask(rows, real)


def _mixed(by_head: Any, unreal: Any) -> Any:
    """The weighted values [heads, ...] for queries, keys and values [3 * heads, ..., T, width]."""
    query, key, value = tf.split(by_head, 3)
    likeness = tf.matmul(query, key, transpose_b=True)
    weights = tf.nn.softmax(likeness + tf.cast(unreal, likeness.dtype))
    return tf.matmul(weights, value)
