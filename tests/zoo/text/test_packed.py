"""How many rows a batch of texts takes."""

import tensorflow as tf
from colcast.zoo.text.packed import segments
from hypothesis import given, settings
from hypothesis import strategies as st


@settings(deadline=None)
@given(st.lists(st.integers(2, 512), max_size=40).map(sorted))
def test_few_rows_are_of_no_text(sizes):
    where = segments(tf.constant(sizes, tf.int32))
    rows, real = len(where.positions), sum(sizes)
    assert int(where.rest) == rows - real
    assert 0 <= rows - real <= max(3, real / 32)


def test_batches_of_up_to_4096_tokens_have_at_most_192_numbers_of_rows():
    rows = {len(segments(tf.constant([size])).positions) for size in range(2, 4096, 7)}
    assert len(rows) <= 192
