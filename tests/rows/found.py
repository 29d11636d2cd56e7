"""Programs that a rule once called independent, though they are not."""

_DENSE = "tf.sparse.to_dense(paired)"
_TAGS = "tf.cast(tf.strings.length(tf.sparse.to_dense(tags)), tf.float32)"
_SUM = "tf.reduce_sum(tf.exp(t0), 1)"
_COUNT = "tf.math.unsorted_segment_sum(tf.ones_like({}, tf.int32), {}, R)"
FOUND = {
    "a dropped dimension that is the only row's": ["tf.squeeze(x)"],
    "a dropped width": ["tf.squeeze(x[:, :1])"],
    "the width of a convolution over a list": [
        f"tf.nn.conv1d({_DENSE}[..., None], <w:2,1,1>, 1, 'SAME')",
        "f * tf.cast(tf.shape(t0)[1], tf.float32)",
    ],
    "rows that trade places with an unknown width": [
        "f[:, None] * tf.boolean_mask(<w:3>, w0 < 1e9)",
        "tf.transpose(tf.reshape(t0, [3, R]))",
    ],
    "as many weights as rows": ["f + tf.boolean_mask(<w:10>, w0 < 1e9)"],
    "rows that are repeated": ["tf.reshape(f[:, None] * tf.boolean_mask(<w:3>, w0 < 1e9), [-1])"],
    "a mask that is true in every row": ["tf.boolean_mask(x, tf.ones_like(x) > 0)"],
    "a size of rank 2": ["f + tf.cast(tf.shape(z)[1] * [[2]], tf.float32)"],
    "two lists of an einsum": [f"tf.einsum('rl,rl->r', {_DENSE}, {_TAGS})"],
    "sizes put together": [
        "tf.concat([tf.shape(z)[1:], [3]], 0)",
        "tf.reshape(f[:, None] * tf.cast(t0, tf.float32), [-1, 2])",
    ],
    "as many places as the longest list has": [
        "tf.where(tf.range(9) < tf.shape(tf.sparse.to_dense(ids))[1])",
        "f * tf.cast(tf.shape(t0)[0], tf.float32)",
    ],
    "a vector between two sizes that are one": [
        "tf.minimum(3, tf.maximum(3, tf.cumsum(tf.cast(i, tf.int32))))",
        "tf.reduce_sum(f[:, None] + tf.cast(t0, tf.float32), 1)",
    ],
    "parts of sizes": ["f[:, None] * tf.cast(tf.split(tf.shape(z[..., None]), 2)[1], tf.float32)"],
    "sizes with one more dimension": ["f[:, None] * tf.cast(tf.shape(x)[tf.newaxis], tf.float32)"],
    "all sizes": ["x[:, :2] * tf.cast(tf.shape(x)[...], tf.float32)"],
    "padding picked by a mask that is true": [
        _DENSE,
        "tf.boolean_mask(t0, tf.ones_like(t0) > 0)",
        "tf.reduce_sum(tf.exp(tf.reshape(t1, [R, -1])), 1)",
    ],
    "entries counted that a list's length picks": [
        _DENSE,
        _SUM,
        "tf.boolean_mask(ids.indices[:, 0], tf.gather(t1, ids.indices[:, 0]) > 6.0)",
        _COUNT.format("t2", "t2"),
    ],
    "words counted of a padded list": [
        "tf.compat.v1.strings.split(tf.strings.reduce_join(tf.sparse.to_dense(tags, 'a '), 1))",
        _COUNT.format("t0.values", "t0.indices[:, 0]"),
    ],
    "crosses counted of a padded list": [
        "tf.sparse.cross([tf.sparse.to_dense(tags, 'a'), s[:, None]])",
        _COUNT.format("t0.values", "t0.indices[:, 0]"),
    ],
    "0.0 and -0.0 are one value": ["1.0 / tf.gather((u := tf.unique(f)).y, u.idx)"],
    "at most a size, of a negative number": [
        "tf.reduce_sum(tf.cast(i, tf.int32))",
        "tf.maximum(tf.shape(x)[1], t0)",
        "f * tf.cast(tf.minimum(tf.shape(x)[1], -t1), tf.float32)",
    ],
    "the longest of what is left of lists": [
        "tf.boolean_mask(ids.indices[:, 0], ids.values > 3)",
        "tf.math.bincount(tf.cast(t0, tf.int32), minlength=R, maxlength=R)",
        "f * tf.cast(tf.reduce_max(t1), tf.float32)",
    ],
    "what is left of lists, padded": [
        "tf.sparse.retain(ids, ids.indices[:, 1] < tf.gather(i, ids.indices[:, 0]))",
        "tf.RaggedTensor.from_sparse(t0).to_tensor(1)",
    ],
    "as many entries of a user as rows": ["f + tf.cast(seen.values, tf.float32)"],
    "the first entries of a user, as many as rows": ["f + tf.cast(seen.values[:R], tf.float32)"],
    "a user's padded list beside rows": [
        "tf.reshape(tf.cast(tf.sparse.to_dense(seen), tf.float32), [-1])",
        "f * t0[:R]",
    ],
    "powers that two kernels compute": ["tf.pow(f, tf.exp(f))"],
    "the sign of NaN as text": ["tf.strings.as_string(tf.floor(f / f))"],
}
