# ruff: noqa: E501
"""Programs, and what the rule must say about them.

A program is expressions with "; " between them: the first is named t0, the second t1, and the last
is judged. `random_graphs` has the columns and lists that they start from; `<w:...>` is a weight of
this shape, and R the number of rows.
"""

from typing import Any

import tensorflow as tf
from colcast.export.rows._op import RULES
from tensorflow.python.framework import op_def_registry

OF_TYPES = {"float32": "x", "int64": "i", "int32": "j[:, 0]", "string": "s", "bool": "b"}


def applied(op: str, **attributes: Any) -> str:
    """An op on columns of the dtypes that it takes, floats where it can."""
    definition = op_def_registry.get(op)
    dtypes = {attr.name: attr.allowed_values.list.type for attr in definition.attr}
    columns = {tf.as_dtype(dtype).as_datatype_enum: name for dtype, name in OF_TYPES.items()}
    given = {name: repr(value) for name, value in attributes.items()}
    for number, argument in enumerate(definition.input_arg):
        allowed = dtypes.get(argument.type_attr) or [argument.type or tf.float32.as_datatype_enum]
        column = next(columns[dtype] for dtype in allowed if dtype in columns)
        column = "xy"[number % 2] if tf.float32.as_datatype_enum in allowed else column
        given[argument.name] = f"[{column}, {column}]" if argument.number_attr else column
    return f"tf.raw_ops.{op}({', '.join(f'{name}={text}' for name, text in given.items())})"


TABLE = "tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([0, 1, 2], [5, 6, 7], tf.int64, tf.int64), -1)"
DENSE = "tf.sparse.to_dense(ids, -1)"
# A list's ids, where it has some (1 or 0), and their vectors.
VECTORS = f"{DENSE}; tf.cast(tf.not_equal(t0, -1), tf.float32); tf.gather(<w:7,3>, t0 + 1)"
UNITS = "tf.cast(tf.range(tf.shape(t0)[1]), tf.float32)"
KEYS = f"{VECTORS}; t2 + {UNITS}[None, :, None]; tf.reduce_sum(t3, 2)"
HOT = "tf.SparseTensor(tf.stack([ids.indices[:, 0], ids.values], 1), tf.ones_like(ids.values, tf.float32), tf.stack([tf.shape(x, tf.int64)[0], 6]))"
FILLED = "tf.sparse.fill_empty_rows(ids, tf.constant(0, tf.int64))[0]"
CROSSED = "tf.raw_ops.SparseCrossHashed(indices=[], values=[], shapes=[], dense_inputs=[{}, i[:, None]], num_buckets={}, strong_hash=False, salt=[1, 2])"
COLUMNS = "tf.reshape(tf.tile(<w:4>[:, None], [1, R]), [-1])"
SQUARE = "tf.matmul(z, z, transpose_b=True) + 5 * tf.eye(3)"
COUNT = "tf.math.unsorted_segment_sum(tf.ones_like({}, tf.int32), {}, R)"


def segments(op: str) -> str:
    """Combines each row's vectors; if the op omits last rows without a value, every row has one."""
    takes = {argument.name for argument in op_def_registry.get(op).input_arg}
    lists = "ids" if "num_segments" in takes else FILLED
    vectors = "t1" if "indices" in takes else "tf.gather(t1, t0.values)"
    given = {"data": vectors, "indices": "t0.values", "num_segments": "R"}
    texts = ", ".join(f"{name}={text}" for name, text in given.items() if name in takes)
    lists = f"tf.SparseTensor(({lists}).indices, ({lists}).values, ({lists}).dense_shape)"
    return f"{lists}; <w:6,3>; tf.raw_ops.{op}(segment_ids=t0.indices[:, 0], {texts})"


def checked(c: dict[str, Any]) -> Any:
    with tf.control_dependencies([tf.debugging.assert_less(c["x"], 99.0)]):
        return c["x"] * 2


def by_function(name: str) -> list[str]:
    return [op for op, rule in RULES.items() if rule.__name__ == name]


ELEMENTS = {  # ops of elements that need attributes, or inputs that no column has
    "AsString": "tf.strings.as_string(i)",
    "BiasAdd": "tf.nn.bias_add(x, <w:4>)",
    "BiasAddV1": "tf.raw_ops.BiasAddV1(value=x, bias=<w:4>)",
    "Bucketize": applied("Bucketize", boundaries=[-1.0, 0.0, 1.0]),
    "CheckNumerics": applied("CheckNumerics", message="wrong"),
    "CheckNumericsV2": applied("CheckNumericsV2", message="wrong"),
    "ClipByValue": "tf.raw_ops.ClipByValue(t=x, clip_value_min=-1.0, clip_value_max=1.0)",
    "DecodeBase64": "tf.io.decode_base64(tf.io.encode_base64(s))",
    "FakeQuantWithMinMaxVars": "tf.quantization.fake_quant_with_min_max_vars(x, -1.0, 1.0)",
    "FakeQuantWithMinMaxVarsPerChannel": "tf.raw_ops.FakeQuantWithMinMaxVarsPerChannel(inputs=x, min=[-1.0] * 4, max=[1.0, 2.0, 3.0, 4.0])",
    "LeftShift": "tf.raw_ops.LeftShift(x=i, y=tf.constant(3, tf.int64))",
    "Pow": "tf.pow(x, 2.0)",
    "RegexFullMatch": "tf.raw_ops.RegexFullMatch(input=s, pattern='a.*')",
    "RegexReplace": "tf.raw_ops.RegexReplace(input=s, pattern='a', rewrite='b')",
    "RightShift": "tf.raw_ops.RightShift(x=i, y=tf.constant(3, tf.int64))",
    "Select": "tf.raw_ops.Select(condition=f > 0, x=x, y=y)",
    "SelectV2": "tf.where(x > 0, y, 0.0)",
    "StaticRegexFullMatch": "tf.strings.regex_full_match(s, 'a.*')",
    "StaticRegexReplace": "tf.strings.regex_replace(s, 'a', 'b')",
    "StringToHashBucket": applied("StringToHashBucket", num_buckets=9),
    "StringToHashBucketFast": "tf.strings.to_hash_bucket_fast(s, 9)",
    "StringToHashBucketStrong": "tf.strings.to_hash_bucket_strong(s, 9, [1, 2])",
    "StringToNumber": "tf.strings.to_number(tf.strings.as_string(i))",
    "Substr": "tf.strings.substr(tf.strings.join([s, 'abc']), 1, 2)",
    "TruncateDiv": "tf.raw_ops.TruncateDiv(x=i, y=tf.constant(3, tf.int64))",
    "TruncateMod": "tf.raw_ops.TruncateMod(x=i, y=tf.constant(3, tf.int64))",
    "UnicodeTranscode": "tf.strings.unicode_transcode(s, 'UTF-8', 'UTF-16-BE')",
}

INDEPENDENT = [
    *(ELEMENTS.get(op) or applied(op) for op in by_function("elementwise")),
    *(segments(op) for op in by_function("segments")),
    "tf.cast(x, tf.int32)",
    "tf.ensure_shape(x, [None, 4])",
    "tf.raw_ops.IdentityN(input=[x, i])[0]",
    "tf.raw_ops.PlaceholderWithDefault(input=x, shape=tf.TensorShape(None))",
    "tf.raw_ops.Snapshot(input=tf.stop_gradient(x))",
    f"{TABLE}; t0.lookup(i)",
    "tf.one_hot(i, 5)",
    "tf.ones_like(x) * x + tf.zeros_like(y)",
    # Shapes
    "tf.broadcast_to(f[:, None], [R, 5])",
    "tf.raw_ops.Concat(concat_dim=1, values=[x, y])",
    "tf.concat([x, f[:, None]], -1)",
    "tf.expand_dims(x, 1)",
    "tf.fill([R, 3], 2.0) * f[:, None]",
    "tf.stack([x, y], axis=1)",
    "tf.pad(x, [[0, 0], [1, 2]])",
    "tf.pad(x, [[0, 0], [1, 2]], constant_values=3.0)",
    "tf.gather(x, tf.range(R))",
    "tf.reshape(tf.reshape(z, [-1, 2]) @ <w:2,3>, [-1, 9])",
    "tf.reshape(z, [R, 2, -1])",
    "f * tf.reshape(tf.tile(tf.gather(<w:3>, tf.where([False, True])[:, 0])[None], [R, 1]), [R])",
    "tf.reshape(x, tf.raw_ops.ShapeN(input=[x, y])[1])",
    "tf.slice(x, [0, 1], [-1, 2])",
    "tf.split(x, 2, axis=1)[1]",
    "tf.split(x, [1, 3], axis=1)[1]",
    "tf.squeeze(x[:, None], 1)",
    "x[:, 1:3] * x[:, 0, tf.newaxis] + x[..., -2:]",
    "x + <w:1,4>[:R]",
    "tf.tile(x[:, None], [1, 3, 2])",
    "tf.transpose(tf.transpose(z, [1, 0, 2]), [1, 2, 0])",
    "tf.unstack(x, axis=1)[2]",
    # Over dimensions
    "f[:, None] * tf.cast(tf.split(tf.shape(z[..., None]), 2)[1], tf.float32)",
    "tf.reduce_all(x > -1, 1)",
    "tf.reduce_any(x > 1, 1)",
    "tf.argmax(x, 1)",
    "tf.argmin(x, 1)",
    "tf.matmul(x[:, None], y[:, :, None])",
    "tf.raw_ops.BatchMatMul(x=x[:, None], y=y[:, :, None])",
    "tf.raw_ops.BatchMatMulV3(x=x[:, None], y=y[:, :, None], Tout=tf.float32)",
    "tf.math.cumprod(x, 1)",
    "tf.cumsum(x, 1, reverse=True)",
    "tf.raw_ops.DenseBincount(input=tf.stack([i, i], 1), size=tf.constant(5, tf.int64), weights=tf.zeros([0]))",
    "tf.math.bincount(tf.cast(tf.stack([i, i], 1), tf.int32), minlength=5, maxlength=5, axis=-1, binary_output=True)",
    "tf.einsum('nhc,cd,nd->nh', z, <w:2,4>, x)",
    "tf.math.reduce_euclidean_norm(x, 1)",
    "tf.nn.log_softmax(x)",
    "tf.matmul(x, <w:3,4>, transpose_b=True)",
    "tf.linalg.band_part(z, 1, 0)",
    "tf.reduce_max(x, 1, keepdims=True)",
    "tf.reduce_mean(z, [1, -1])",
    "tf.reduce_min(x, -1)",
    "tf.reduce_prod(x, 1)",
    "tf.nn.softmax(x)",
    "tf.reduce_sum(x, 1)",
    "tf.math.top_k(x, 2).values",
    # Entries looked up
    f"{SQUARE}; tf.reshape(tf.boolean_mask(t0, tf.linalg.band_part(tf.ones_like(t0), -1, 0) > 0), [R, 6])",
    f"{SQUARE}; tf.reshape(tf.boolean_mask(t0, [[False, False, False], [True, False, False], [True, True, False]], axis=1), [R, 3])",
    "tf.gather(x, i % 4, batch_dims=1)",
    "tf.raw_ops.Gather(params=tf.identity(<w:6,3>), indices=i)",
    "tf.gather(tf.identity(<w:6,3>), i)",
    "tf.gather(x, [2, 0], axis=1)",
    "tf.gather(x, i[:, None] % 4, batch_dims=1)",
    "tf.gather_nd(x, tf.stack([tf.range(R, dtype=tf.int64), i % 4], 1))",
    "tf.searchsorted(tf.sort(<w:5>), f)",
    "tf.searchsorted(tf.sort(<w:5>), f, side='right')",
    "tf.raw_ops.LowerBound(sorted_inputs=tf.cumsum(tf.abs(x), 1), values=f[:, None])",
    "tf.gather(<w:6,3>, i)",
    "tf.raw_ops.Unique(x=i); tf.gather(tf.gather(<w:6,3>, t0.y) * 2, t0.idx)",
    "tf.raw_ops.UniqueV2(x=i, axis=[0]); tf.gather(tf.gather(<w:6,3>, t0.y) * 2, t0.idx)",
    # Lists
    "tf.nn.safe_embedding_lookup_sparse(<w:6,3>, ids)",
    f"{HOT}; tf.sparse.sparse_dense_matmul(t0, <w:6,3>)",
    "tf.raw_ops.PlaceholderWithDefault(input=[0, 0, 0], shape=tf.TensorShape(None)); x * tf.math.unsorted_segment_sum(tf.ones([3, 4]), t0, 1)",
    "tf.reduce_max(prices, 1)",
    "tf.reduce_mean(tf.gather(<w:6,3>, clicks), 1)",
    "tf.reduce_sum(prices.to_tensor(shape=[None, 3]), 1)",
    "tf.strings.split(s).to_tensor(shape=[None, 2])",
    "tf.raw_ops.StringSplit(input=s, delimiter=' '); tf.math.unsorted_segment_sum(tf.strings.length(t0.values), t0.indices[:, 0], R)",
    "tf.sparse.slice(paired, [0, 1], [R, 2]); tf.math.unsorted_segment_sum(t0.values, t0.indices[:, 0], R)",
    "tf.reshape(tf.sparse.to_dense(tf.sparse.cross_hashed([s[:, None], i[:, None]], 9)), [-1])",
    CROSSED.format("i[:, None]", "tf.constant(9, tf.int64)")
    + "; tf.reshape(t0.output_values, [R])",
    "tf.raw_ops.SparseCrossV2(indices=[], values=[], shapes=[], dense_inputs=[s[:, None], s[:, None]], sep='_'); tf.reshape(t0.output_values, [R])",
    "tf.where(f > 0); tf.math.unsorted_segment_sum(tf.gather_nd(f, t0), t0[:, 0], R)",
    checked,
]

# Whatever fills a list's end, what is computed over its width names the list: 0 times NaN is NaN.
LENGTHS = {
    ("ids",): [
        "tf.where(tf.range(9) < tf.shape(tf.sparse.to_dense(ids))[1]); f * tf.cast(tf.shape(t0)[0], tf.float32)",
        f"{VECTORS}; tf.reduce_sum(t2 * t1[..., None], 1)",
        f"{VECTORS}; tf.reduce_sum(t2 * t1[..., None], 1) / (tf.reduce_sum(t1, 1, keepdims=True) + 1)",
        f"{VECTORS}; tf.matmul(t1[:, None], t2)[:, 0]",
        f"{KEYS}; tf.einsum('rl,rld->rd', tf.nn.softmax(tf.where(t1 > 0, t4, -1e9)), t3)",
        f"{KEYS}; tf.einsum('rl,rld->rd', tf.nn.softmax(t4 + (1 - t1) * -1e9), t3)",
        f"{KEYS}; tf.einsum('rl,rld->rd', tf.nn.softmax(1e6 * t4 + (1 - t1) * -1e6), t3)",
        f"{VECTORS}; tf.reduce_sum(tf.nn.softmax(tf.where(t1 > 0, 0.0, -1e9)) ** 2, 1)",
        f"{VECTORS}; tf.pad(tf.nn.softmax(tf.where(t1 > 0, 0.0, -1e9)), [[0, 0], [0, 1]])[:, 0]",
        f"{VECTORS}; tf.reduce_sum(tf.nn.softmax(tf.where((t1 > 0) & (t0 > 4), 0.0, -1e9)) * t1, 1)",
        f"{VECTORS}; tf.cast(t0, tf.float32); tf.reduce_sum(tf.math.log(t3) * tf.cast(t0 > 0, tf.float32), 1)",
        f"{VECTORS}; tf.cast(t0, tf.float32); tf.matmul((1 / (t3 + 1))[:, None], t1[..., None])[:, 0, 0]",
        f"{VECTORS}; tf.cast(t0, tf.float32); tf.einsum('rl,rl->r', t1, t3 - (tf.reduce_sum(t3 * t1, 1) / tf.reduce_sum(t1, 1))[:, None])",
        f"{VECTORS}; tf.reduce_sum(t1 * (1 / ({UNITS} - 3)), 1)",
        f"{VECTORS}; tf.reduce_sum(tf.where({UNITS} > 2, float('inf'), f[:, None]) * t1, 1)",
        f"{VECTORS}; tf.reduce_mean(t2, 1)",
        f"{VECTORS}; tf.nn.softmax(tf.reduce_sum(t2, 2))",
        f"{VECTORS}; tf.reduce_sum(tf.matmul(t2, t2, transpose_b=True) * t1[:, None], [1, 2])",
        f"{VECTORS}; tf.reduce_sum(tf.cumsum(tf.tile(t0, [1, 2]), 1) * tf.tile(tf.cast(t1, tf.int64), [1, 2]), 1)",
        f"{VECTORS}; tf.where(tf.reshape(tf.stack([t1, t1], 1), [R, 2 * tf.shape(t1)[1]]) > 0); tf.math.unsorted_segment_sum(t3[:, 1], t3[:, 0], R)",
        f"{DENSE}; tf.reduce_max(tf.cast(t0, tf.float32), 1)",
        f"{DENSE}; tf.pad(t0, [[0, 0], [0, 1]], constant_values=4)[:, -1]",
        f"{DENSE}; tf.raw_ops.LowerBound(sorted_inputs=tf.cumsum(t0, 1), values=i[:, None])",
        f"{DENSE}; f * tf.cast(tf.shape(t0[:, :3])[1], tf.float32)",
        f"{DENSE}; tf.reduce_sum(tf.ones_like(t0[:, :3]), 1)",
        f"{DENSE}; tf.gather(tf.pad(t0, [[0, 0], [0, 1]], constant_values=9), tf.cast(columns['ids/length'], tf.int32)[:, None], batch_dims=1)",
        f"{DENSE}; {CROSSED.format('t0', 'tf.constant(9, tf.int64)')}; tf.math.unsorted_segment_sum(t1.output_values, t1.output_indices[:, 0], R)",
        "f * tf.cast(ids.dense_shape[1], tf.float32)",
        f"{TABLE}; i + t0.lookup(ids.dense_shape[1])",
        "tf.pad(x, [[0, 0], [0, 1]], constant_values=tf.cast(ids.dense_shape[1], tf.float32))",
        "tf.one_hot(i, 5, on_value=ids.dense_shape[1])",
        f"{VECTORS}; tf.reduce_max(tf.concat([t2, x[:, None, :3]], 1), [1, 2])",
        f"{VECTORS}; tf.concat([x[:, None, :3], t2], 1)[:, 0, 0]",
    ],
    ("paired", "tags"): [
        "tf.einsum('rl,rl->r', tf.sparse.to_dense(paired), tf.cast(tf.strings.length(tf.sparse.to_dense(tags)), tf.float32))"
    ],
    ("tags",): [
        f"tf.sparse.cross([tf.sparse.to_dense(tags, 'a'), s[:, None]]); {COUNT.format('t0.values', 't0.indices[:, 0]')}"
    ],
    ("paired",): [
        f"tf.sparse.to_dense(paired); tf.reduce_sum(tf.exp(t0), 1); tf.boolean_mask(ids.indices[:, 0], tf.gather(t1, ids.indices[:, 0]) > 6.0); {COUNT.format('t2', 't2')}",
        "tf.sparse.to_dense(paired); tf.reduce_sum(t0 * f[:, None], 1)",
        "tf.sparse.to_dense(paired); tf.einsum('rl,rl->r', t0, t0 + f[:, None])",
        "tf.sparse.to_dense(paired); tf.matmul(t0[:, None], (1.0 / t0)[..., None])[:, 0, 0]",
        "tf.sparse.to_dense(paired); tf.reduce_mean(t0, 1)",
        "tf.sparse.to_dense(paired); tf.reduce_sum(t0[:, :3], 1)",
        "tf.reduce_sum(tf.sparse.to_dense(tf.sparse.slice(paired, [0, 0], [R, 3])), 1)",
        "tf.reduce_sum(tf.sparse.to_dense(tf.sparse.reorder(paired)), 1)",
        "tf.reduce_sum(tf.sparse.to_dense(tf.sparse.reshape(paired, [R, -1])), 1)",
    ],
    ("prices",): [
        "tf.reduce_sum(prices.to_tensor(), 1)",
        "tf.reduce_sum(tf.sequence_mask(prices.row_lengths(), dtype=tf.float32) * f[:, None], 1)",
    ],
    ("ids", "prices"): [
        f"{VECTORS}; prices.to_tensor()[..., None]; tf.reduce_sum(tf.nn.softmax(tf.concat([t2, t3], 2), 1), [1, 2])",
        f"{DENSE}; tf.reduce_sum(tf.concat([prices.to_tensor(), tf.cast(t0, tf.float32)], 1), 1)",
        f"{VECTORS}; tf.linalg.band_part(tf.ones([tf.shape(prices.to_tensor())[1]] * 2), -1, 0)[None]; tf.reduce_sum(t3 @ t2, [1, 2])",
    ],
}

# Also programs that a rule once called independent, though they are not, and independent ones that
# no class of ops covers. The text is part of the reason.
MIXING = {
    "tf.reshape(tf.boolean_mask(x, x > 0), [R, -1])": "",
    "tf.math.bincount(tf.cast(i, tf.int32), minlength=R)": "",
    "tf.math.bincount(tf.cast(ids.indices[:, 0], tf.int32) + 1, minlength=R)": "",
    "tf.math.bincount(tf.cast(tf.stack([i, i], 1), tf.int32), minlength=2, maxlength=5, axis=-1)": "",
    "f * tf.ones([tf.maximum(R, 2 - tf.cast(tf.reduce_max(tf.range(R)), tf.int32))])": "",
    "tf.nn.softmax(f)": "",
    "tf.transpose(tf.nn.softmax(tf.transpose(x)))": "",
    "f / tf.reduce_sum(f)": "",
    "x - tf.reduce_mean(x)": "",
    "tf.where(f >= tf.math.top_k(f, tf.minimum(100, R)).values[-1], f, -9.0)": "",
    "tf.sort(f)": "",
    "tf.gather(x, i % 4, axis=1)": "",
    "f - tf.reduce_min(tf.ones_like(paired.values))": "",
    "tf.cumsum(f)": "",
    "tf.reduce_sum(tf.cast(f[:, None] > f, tf.float32), 1)": "",
    "tf.where(R > 100, f, -f)": "",
    "f / tf.cast(R, tf.float32)": "",
    "f * tf.cast(tf.range(R), tf.float32)": "",
    "x - x[0]": "",
    "x - x[-1:]": "",
    "x[::-1]": "",
    "tf.gather(x, tf.minimum(i, 0))": "",
    "tf.unique_with_counts(i); tf.gather(t0.count, t0.idx)": "UniqueWithCounts",
    "tf.gather(tf.math.unsorted_segment_sum(f, i, 6), i)": "",
    "tf.reshape(x, [4, -1])[:, :1] * tf.ones([4, 1])": "",
    "tf.reduce_sum(tf.RaggedTensor.from_row_splits(f, tf.concat([[0], i], 0), validate=False), 1)": "",
    "tf.matmul(x, tf.matmul(x, x, transpose_a=True))": "",
    "tf.cond(tf.reduce_any(i > 7), lambda: tf.nn.softmax(f), lambda: f)": "",
    "tf.reduce_max(f)": "",
    "tf.constant([1.0])": "",
    "tf.cast(tf.cast(columns['ids/length'], tf.bool), tf.int64); tf.reduce_sum(tf.cast(tf.sequence_mask(t0), tf.int64) * tf.sparse.to_dense(ids, 3), 1)": "",
    "tf.reduce_sum(tf.sequence_mask(columns['paired/length'], dtype=tf.float32) * columns['paired'], 1)": "",
    "tf.SparseTensor(ids.indices, ids.values, tf.stack([tf.shape(x, tf.int64)[0], 2 * ids.dense_shape[1]])); tf.reduce_sum(tf.sparse.to_dense(tf.sparse.reshape(t0, tf.stack([tf.shape(x, tf.int64)[0], 4, -1]))), 2)": "",
    "tf.nn.embedding_lookup_sparse(<w:6,3>, ids, None, combiner='sum')": "",
    "f * tf.cast(tf.size(ids.values), tf.float32)": "",
    "i + tf.reduce_max(i)": "",
    "tf.reduce_sum(x[:, :R], 1)": "",
    "f + tf.reduce_sum(<w:1>[:R - 5])": "",
    "tf.reduce_sum(x[:, R:], 1)": "",
    "tf.one_hot(i, 5, on_value=R)": "",
    "tf.one_hot(i, 5, off_value=R)": "",
    "tf.pad(x, [[0, 0], [1, 0]], constant_values=tf.cast(R, tf.float32))": "",
    f"{TABLE}; tf.raw_ops.LookupTableFindV2(table_handle=t0.resource_handle, keys=i, default_value=tf.shape(x, tf.int64)[0])": "",
    "tf.searchsorted(tf.sort(f), f)": "",
    "tf.searchsorted(tf.cumsum(f), f)": "",
    "tf.linalg.band_part(z, R, 0)": "",
    CROSSED.format("i[:, None]", "tf.shape(x, tf.int64)[0]")
    + "; tf.reshape(t0.output_values, [R])": "",
    "f * tf.gather_nd(<w:9>, [R])": "",
    "f + tf.slice(<w:99>, [0], [R])": "",
    "tf.unique(i); tf.gather(tf.math.unsorted_segment_sum(f, t0.idx, tf.size(t0.y)), t0.idx)": "",
    "tf.unique(i); tf.gather(tf.math.bincount(t0.idx, minlength=tf.size(t0.y), maxlength=tf.size(t0.y)), t0.idx)": "",
    "tf.math.unsorted_segment_sum(tf.reshape(f[:, None] * f, [-1]), tf.reshape(tf.tile(tf.range(R)[None], [R, 1]), [-1]), R)": "",
    f"{COLUMNS}; f * tf.cast(tf.argmax(t0), tf.float32)": "",
    f"{COLUMNS}; tf.raw_ops.TensorListFromTensor(tensor=t0, element_shape=tf.constant([], tf.int32)); f * tf.raw_ops.TensorListGetItem(input_handle=t1, index=3, element_shape=tf.constant([], tf.int32), element_dtype=tf.float32)": "",
    "f + tf.reduce_sum(tf.reshape(x[:, 4:], [-1, 2]))": "",
    "tf.unique(f); tf.gather(t0.y, t0.idx)": "0 and -0 count as one value",
    "tf.cast(tf.cast(f * 1e9, tf.int8), tf.float32)": "int8",
    f"{DENSE}; tf.squeeze(tf.cast(t0, tf.float32)[..., None] * <w:3>); tf.reduce_sum(tf.reshape(tf.reduce_sum(t1, 1), [R, -1]) ** 2, 1)": "it has no `axis`",
    "tf.linalg.qr(z).r": "no rule says how this op treats rows (Qr ",
    "tf.boolean_mask(tf.cast(ids.values, tf.float32), ids.values > 2) * paired.values; tf.math.unsorted_segment_sum(t0, paired.indices[:, 0], R)": "cannot tell whether ids and paired are equally long (Mul ",
    # Wrong lengths in two rows, with the right sum, would shift the weights of the rows between.
    "tf.nn.safe_embedding_lookup_sparse(<w:6,3>, ids, paired, combiner='mean')": "cannot tell whether ids and paired are equally long (",
    # Independent, or but for the length of lists
    "tf.shape(tf.sparse.to_dense(paired))[1]; tf.math.unsorted_segment_sum(tf.ones(R * t0), tf.repeat(tf.range(R), t0), R)": "",
    "tf.raw_ops.Atan2(y=x, x=y)": "Atan2",
    "tf.pow(x, y)": "NaN has several results (Pow ",
    "tf.strings.as_string(tf.floor(f / f))": "NaN has several results (AsString ",
    "tf.math.bincount(tf.cast(ids.indices[:, 0], tf.int32), minlength=R)": "",
    "tf.raw_ops.FusedBatchNormV3(x=z[:, None], scale=[1.0, 2.0], offset=[0.0, 1.0], mean=[0.5, 0.25], variance=[1.0, 4.0], is_training=False).y": "FusedBatchNormV3",
    "tf.raw_ops.FusedBatchNormV3(x=z[:, None], scale=[1.0, 2.0], offset=[0.0, 1.0], mean=[], variance=[], is_training=True).y": "FusedBatchNormV3",
    "tf.sparse.reduce_sum(tf.sparse.slice(paired, [0, 1], [R, 2]), 1)": "SparseReduceSum",
    f"{VECTORS}; tf.reduce_sum(tf.bitcast(t0, tf.float64) * tf.cast(t1, tf.float64), 1)": "Bitcast",
    f"{DENSE}; tf.map_fn(lambda row: tf.reduce_mean(tf.cast(row, tf.float32)), t0, fn_output_signature=tf.float32)": "",
    f"{DENSE}; tf.reverse(t0, [1])": "ReverseV2",
    f"{DENSE}; tf.roll(t0, 1, 1)": "Roll",
    f"{DENSE}; tf.strings.reduce_join(tf.strings.as_string(t0), 1)": "ReduceJoin",
    f"{DENSE}; tf.math.in_top_k(i, tf.cast(t0, tf.float32), 2)": "InTopKV2",
    "f * tf.nn.l2_loss(tf.ones([ids.dense_shape[1]]))": "L2Loss",
    f"{DENSE}; tf.gather(tf.pad(t0, [[0, 0], [0, 1]], 'SYMMETRIC'), tf.cast(columns['ids/length'], tf.int32)[:, None], batch_dims=1)": "MirrorPad",
    "tf.nn.conv2d(z[..., None], tf.fill([1, 1, 1, 1], tf.cast(ids.dense_shape[1], tf.float32)), 1, 'SAME')": "Conv2D",
    "tf.raw_ops.Switch(data=x, pred=ids.dense_shape[1] > 3); tf.raw_ops.Merge(inputs=[t0.output_false, t0.output_true * 2]).output": "Merge",
    # Found in earlier rules
    "tf.squeeze(x)": "it has no `axis`",
    "tf.squeeze(x[:, :1])": "it has no `axis`",
    "tf.nn.conv1d(tf.sparse.to_dense(paired)[..., None], <w:2,1,1>, 1, 'SAME'); f * tf.cast(tf.shape(t0)[1], tf.float32)": "",
    "f[:, None] * tf.boolean_mask(<w:3>, <w:3> < 1e9); tf.transpose(tf.reshape(t0, [3, R]))": "",
    "f + tf.boolean_mask(<w:10>, <w:10> < 1e9)": "",
    "tf.reshape(f[:, None] * tf.boolean_mask(<w:3>, <w:3> < 1e9), [-1])": "",
    "tf.boolean_mask(x, tf.ones_like(x) > 0)": "",
    "f + tf.cast(tf.shape(z)[1] * [[2]], tf.float32)": "",
    "tf.concat([tf.shape(z)[1:], [3]], 0); tf.reshape(f[:, None] * tf.cast(t0, tf.float32), [-1, 2])": "",
    "tf.minimum(3, tf.maximum(3, tf.cumsum(tf.cast(i, tf.int32)))); tf.reduce_sum(f[:, None] + tf.cast(t0, tf.float32), 1)": "",
    "f[:, None] * tf.cast(tf.shape(x)[tf.newaxis], tf.float32)": "",
    "x[:, :2] * tf.cast(tf.shape(x)[...], tf.float32)": "",
    "tf.sparse.to_dense(paired); tf.boolean_mask(t0, tf.ones_like(t0) > 0); tf.reduce_sum(tf.exp(tf.reshape(t1, [R, -1])), 1)": "",
    f"tf.compat.v1.strings.split(tf.strings.reduce_join(tf.sparse.to_dense(tags, 'a '), 1)); {COUNT.format('t0.values', 't0.indices[:, 0]')}": "",
    "tf.reduce_sum(tf.cast(i, tf.int32)); tf.maximum(tf.shape(x)[1], t0); f * tf.cast(tf.minimum(tf.shape(x)[1], -t1), tf.float32)": "",
    "tf.boolean_mask(ids.indices[:, 0], ids.values > 3); tf.math.bincount(tf.cast(t0, tf.int32), minlength=R, maxlength=R); f * tf.cast(tf.reduce_max(t1), tf.float32)": "",
    "tf.sparse.retain(ids, ids.indices[:, 1] < tf.gather(i, ids.indices[:, 0])); tf.RaggedTensor.from_sparse(t0).to_tensor(1)": "",
    "f + tf.cast(seen.values, tf.float32)": "",
    "f + tf.cast(seen.values[:R], tf.float32)": "",
    "tf.reshape(tf.cast(tf.sparse.to_dense(seen), tf.float32), [-1]); f * t0[:R]": "",
}

# Loops, conditions and their lists, linear algebra, row numbers as indices, and ops that combine
# rows if they are given so; and convolutions, whose padding meets infinite weights in some kernels.
NO_CLASS = """\
Bitcast Conv2D DeepCopy FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3 If InTopKV2 L2Loss
MatrixDiagPartV3 MatrixDiagV3 MatrixInverse MatrixTriangularSolve ReduceJoin ReverseSequence
ReverseV2 Roll ScatterNd SparseReduceMax SparseReduceSum StatelessIf StatelessRandomUniformV2
StatelessWhile TensorListFromTensor TensorListReserve TensorListStack TensorScatterAdd
TensorScatterUpdate UniqueWithCounts UniqueWithCountsV2 While
"""
