"""Checks each op's rule with TensorFlow: independent rows stay apart, others are refused."""

import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from colcast.export.rows._op import RULES
from tensorflow.python.framework import op_def_registry

from .graphs import Build, Graph, draw, ragged, sparse

raw = tf.raw_ops
C = Mapping[str, Any]


def table(*shape: int) -> Any:
    """A constant table of random weights."""
    return tf.constant(np.random.default_rng(1).normal(size=shape).astype(np.float32))


def rows(c: C) -> Any:
    return tf.shape(c["f"])[0]


def dense(c: C, fill: Any = 0) -> Any:
    """A list feature as a dense tensor, padded with `fill`."""
    return tf.sparse.to_dense(sparse(c, "ids"), default_value=fill)


def mask(c: C) -> Any:
    """A mask: 1 where a list has a value."""
    return tf.cast(tf.not_equal(dense(c, -1), -1), tf.float32)


def embedded(c: C) -> Any:
    """Vectors of a list's ids, [rows, longest, 3]."""
    return tf.gather(table(7, 3), dense(c, -1) + 1)


def static_table(values: Any) -> Any:
    """A lookup table that has the ids 0 to 2."""
    keys = tf.constant([0, 1, 2], tf.int64)
    return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), -1)


def applied(op: str, c: C, **attributes: Any) -> Any:
    """An op on columns of the dtypes that it takes, floats where it can."""
    definition = op_def_registry.get(op)
    dtypes = {attr.name: attr.allowed_values.list.type for attr in definition.attr}
    columns: dict[int, Any] = {
        tf.int64.as_datatype_enum: c["i"],
        tf.int32.as_datatype_enum: tf.cast(c["i"], tf.int32),
        tf.string.as_datatype_enum: c["s"],
        tf.bool.as_datatype_enum: c["x"] > 0,
    }
    floats, given = [c["x"], c["y"]], {}
    for number, argument in enumerate(definition.input_arg):
        allowed = dtypes.get(argument.type_attr) or [argument.type or tf.float32.as_datatype_enum]
        fitting = [columns[dtype] for dtype in allowed if dtype in columns]
        of_floats = tf.float32.as_datatype_enum in allowed
        column = floats[number % 2] if of_floats else fitting[0]
        given[argument.name] = [column, column] if argument.number_attr else column
    return getattr(raw, op)(**given, **attributes)


# Ops of elements that need attributes, or inputs that no column has.
ELEMENTS: dict[str, Build] = {
    "AsString": lambda c: tf.strings.as_string(c["i"]),
    "Pow to a constant": lambda c: tf.pow(c["x"], 2.0),
    "BiasAdd": lambda c: tf.nn.bias_add(c["x"], table(4)),
    "BiasAddV1": lambda c: raw.BiasAddV1(value=c["x"], bias=table(4)),
    "Bucketize": lambda c: applied("Bucketize", c, boundaries=[-1.0, 0.0, 1.0]),
    "Cast": lambda c: tf.cast(c["x"], tf.int32),
    "CheckNumerics": lambda c: applied("CheckNumerics", c, message="wrong"),
    "CheckNumericsV2": lambda c: applied("CheckNumericsV2", c, message="wrong"),
    "ClipByValue": lambda c: raw.ClipByValue(t=c["x"], clip_value_min=-1.0, clip_value_max=1.0),
    "DecodeBase64": lambda c: tf.io.decode_base64(tf.io.encode_base64(c["s"])),
    "EnsureShape": lambda c: tf.ensure_shape(c["x"], [None, 4]),
    "FakeQuantWithMinMaxVars": lambda c: tf.quantization.fake_quant_with_min_max_vars(
        c["x"], -1.0, 1.0
    ),
    "FakeQuantWithMinMaxVarsPerChannel": lambda c: raw.FakeQuantWithMinMaxVarsPerChannel(
        inputs=c["x"], min=[-1.0] * 4, max=[1.0, 2.0, 3.0, 4.0]
    ),
    "IdentityN": lambda c: raw.IdentityN(input=[c["x"], c["i"]])[0],
    "LeftShift": lambda c: raw.LeftShift(x=c["i"], y=tf.constant(3, tf.int64)),
    "LookupTableFindV2": lambda c: static_table(tf.constant([5, 6, 7], tf.int64)).lookup(c["i"]),
    "OneHot": lambda c: tf.one_hot(c["i"], 5),
    "OnesLike": lambda c: tf.ones_like(c["x"]) * c["x"],
    "RegexFullMatch": lambda c: raw.RegexFullMatch(input=c["s"], pattern="a.*"),
    "RegexReplace": lambda c: raw.RegexReplace(input=c["s"], pattern="a", rewrite="b"),
    "RightShift": lambda c: raw.RightShift(x=c["i"], y=tf.constant(3, tf.int64)),
    "Select": lambda c: raw.Select(condition=c["f"] > 0, x=c["x"], y=c["y"]),
    "SelectV2": lambda c: tf.where(c["x"] > 0, c["y"], 0.0),
    "StaticRegexFullMatch": lambda c: tf.strings.regex_full_match(c["s"], "a.*"),
    "StaticRegexReplace": lambda c: tf.strings.regex_replace(c["s"], "a", "b"),
    "StringToHashBucket": lambda c: applied("StringToHashBucket", c, num_buckets=9),
    "StringToHashBucketFast": lambda c: tf.strings.to_hash_bucket_fast(c["s"], 9),
    "StringToHashBucketStrong": lambda c: tf.strings.to_hash_bucket_strong(c["s"], 9, [1, 2]),
    "StringToNumber": lambda c: tf.strings.to_number(tf.strings.as_string(c["i"])),
    "Substr": lambda c: tf.strings.substr(tf.strings.join([c["s"], "abc"]), 1, 2),
    "TruncateDiv": lambda c: raw.TruncateDiv(x=c["i"], y=tf.constant(3, tf.int64)),
    "TruncateMod": lambda c: raw.TruncateMod(x=c["i"], y=tf.constant(3, tf.int64)),
    "UnicodeTranscode": lambda c: tf.strings.unicode_transcode(c["s"], "UTF-8", "UTF-16-BE"),
    "ZerosLike": lambda c: tf.zeros_like(c["x"]) + c["x"],
    "PlaceholderWithDefault": lambda c: hidden(c["x"]),
}
_OTHERS = ["Atan2", "DeepCopy", "Pow", "Snapshot", "StopGradient"]
for _op in [*(op for op, rule in RULES.items() if rule.__name__ == "elementwise"), *_OTHERS]:
    ELEMENTS.setdefault(_op, partial(applied, _op))

SHAPES: dict[str, Build] = {
    "BroadcastTo": lambda c: tf.broadcast_to(c["f"][:, None], [rows(c), 5]),
    "Concat": lambda c: raw.Concat(concat_dim=1, values=[c["x"], c["y"]]),
    "ConcatV2": lambda c: tf.concat([c["x"], c["f"][:, None]], -1),
    "ExpandDims": lambda c: tf.expand_dims(c["x"], 1),
    "Fill": lambda c: tf.fill([rows(c), 3], 2.0) * c["f"][:, None],
    "Pack": lambda c: tf.stack([c["x"], c["y"]], axis=1),
    "Pad": lambda c: tf.pad(c["x"], [[0, 0], [1, 2]]),
    "PadV2": lambda c: tf.pad(c["x"], [[0, 0], [1, 2]], constant_values=3.0),
    "Range": lambda c: tf.gather(c["x"], tf.range(rows(c))),
    "Reshape": lambda c: tf.reshape(tf.reshape(c["image"], [-1, 2]) @ table(2, 3), [-1, 90]),
    "Reshape of a shape": lambda c: tf.reshape(c["image"], [rows(c), 5, -1]),
    "Reshape without a dimension of size 1": lambda c: (
        c["f"]
        * tf.reshape(
            tf.tile(tf.gather(table(3), tf.where([False, True])[:, 0])[None], [rows(c), 1]),
            [rows(c)],
        )
    ),
    "ShapeN": lambda c: tf.reshape(c["x"], raw.ShapeN(input=[c["x"], c["y"]])[1]),
    "Slice": lambda c: tf.slice(c["x"], [0, 1], [-1, 2]),
    "Split": lambda c: tf.split(c["x"], 2, axis=1)[1],
    "SplitV": lambda c: tf.split(c["x"], [1, 3], axis=1)[1],
    "Squeeze": lambda c: tf.squeeze(c["x"][:, None], 1),
    "StridedSlice": lambda c: c["x"][:, 1:3] * c["x"][:, 0, tf.newaxis] + c["x"][..., -2:],
    "StridedSlice to the number of rows": lambda c: c["x"] + table(1, 4)[: rows(c)],
    "Tile": lambda c: tf.tile(c["x"][:, None], [1, 3, 2]),
    "Transpose": lambda c: tf.transpose(tf.transpose(c["image"], [1, 0, 2, 3]), [1, 2, 3, 0]),
    "Unpack": lambda c: tf.unstack(c["x"], axis=1)[2],
}

SUMS: dict[str, Build] = {
    "All": lambda c: tf.reduce_all(c["x"] > -1, 1),
    "Any": lambda c: tf.reduce_any(c["x"] > 1, 1),
    "ArgMax": lambda c: tf.argmax(c["x"], 1),
    "ArgMin": lambda c: tf.argmin(c["x"], 1),
    "BatchMatMulV2": lambda c: tf.matmul(c["x"][:, None], c["y"][:, :, None]),
    "Bincount of rows": lambda c: tf.math.bincount(
        tf.cast(sparse(c, "ids").indices[:, 0], tf.int32), minlength=rows(c)
    ),
    "Cumprod": lambda c: tf.math.cumprod(c["x"], 1),
    "Cumsum": lambda c: tf.cumsum(c["x"], 1, reverse=True),
    "DenseBincount": lambda c: raw.DenseBincount(
        input=tf.stack([c["i"], c["i"]], 1), size=tf.constant(5, tf.int64), weights=table(0)
    ),
    "DenseBincount of a size": lambda c: tf.math.bincount(
        tf.cast(tf.stack([c["i"], c["i"]], 1), tf.int32),
        minlength=5,
        maxlength=5,
        axis=-1,
        binary_output=True,
    ),
    "Einsum": lambda c: tf.einsum("nhwc,cd,nd->nhw", c["image"], table(2, 4), c["x"]),
    "EuclideanNorm": lambda c: tf.math.reduce_euclidean_norm(c["x"], 1),
    "LogSoftmax": lambda c: tf.nn.log_softmax(c["x"]),
    "MatMul": lambda c: tf.matmul(c["x"], table(3, 4), transpose_b=True),
    "MatrixBandPart": lambda c: tf.linalg.band_part(c["image"][..., 0], 1, 0),
    "Max": lambda c: tf.reduce_max(c["x"], 1, keepdims=True),
    "Mean": lambda c: tf.reduce_mean(c["image"], [1, -2]),
    "Min": lambda c: tf.reduce_min(c["x"], -1),
    "Prod": lambda c: tf.reduce_prod(c["x"], 1),
    "Softmax": lambda c: tf.nn.softmax(c["x"]),
    "Sum": lambda c: tf.reduce_sum(c["x"], 1),
    "TopKV2": lambda c: tf.math.top_k(c["x"], 2).values,
}


def _square(c: C) -> Any:
    """For each row, a positive definite matrix."""
    matrix = c["image"][..., 0]
    return tf.matmul(matrix, matrix, transpose_b=True) + 5 * tf.eye(5)


LOOKUPS: dict[str, Build] = {
    "boolean_mask of a triangle": lambda c: tf.reshape(
        tf.boolean_mask(_square(c), tf.linalg.band_part(tf.ones_like(_square(c)), -1, 0) > 0),
        [rows(c), 15],
    ),
    "boolean_mask of a constant": lambda c: tf.reshape(
        tf.boolean_mask(_square(c), np.tri(5, k=-1) > 0, axis=1), [rows(c), 10]
    ),
    "GatherV2 of one entry of each row": lambda c: tf.gather(c["x"], c["i"], batch_dims=1),
    "Gather": lambda c: raw.Gather(params=table(6, 3), indices=c["i"]),
    "GatherV2": lambda c: tf.gather(table(6, 3), c["i"]),
    "GatherV2 along columns": lambda c: tf.gather(c["x"], [2, 0], axis=1),
    "GatherV2 of each row": lambda c: tf.gather(c["x"], c["i"][:, None], batch_dims=1),
    "GatherNd": lambda c: tf.gather_nd(c["x"], own_column(c)),
    "LowerBound": lambda c: tf.searchsorted(tf.sort(table(5)), c["f"]),
    "LowerBound in each row": lambda c: raw.LowerBound(
        sorted_inputs=tf.cumsum(tf.abs(c["x"]), 1), values=c["f"][:, None]
    ),
    "UpperBound": lambda c: tf.searchsorted(tf.sort(table(5)), c["f"], side="right"),
    "ResourceGather": lambda c: tf.compat.v1.get_variable(
        "v", [6, 3], use_resource=True
    ).sparse_read(c["i"]),
}


def own_column(c: C) -> Any:
    """One position per row in a matrix: the row's own number, and a column given by a value."""
    return tf.stack([tf.range(rows(c), dtype=tf.int32), tf.cast(c["i"], tf.int32)], 1)


def _through_unique(op: str, c: C) -> Any:
    """Rows of a table by value, each looked up once."""
    found = getattr(raw, op)(x=c["i"], **({"axis": [0]} if op.endswith("V2") else {}))
    return tf.gather(tf.gather(table(6, 3), found.y) * 2, found.idx)


LISTS: dict[str, Build] = {
    "SparseToDense": lambda c: tf.reduce_sum(embedded(c) * mask(c)[..., None], 1),
    "RaggedTensorToTensor": lambda c: tf.reduce_sum(ragged(c, "weights").to_tensor(), 1),
    "SparseFillEmptyRows": lambda c: tf.nn.safe_embedding_lookup_sparse(
        table(6, 3), sparse(c, "ids")
    ),
    "SparseReorder": lambda c: _sum(tf.sparse.reorder(sparse(c, "weights"))),
    "SparseReshape": lambda c: _sum(tf.sparse.reshape(sparse(c, "weights"), [rows(c), -1])),
    "SparseReduceSum": lambda c: raw.SparseReduceSum(
        input_indices=sparse(c, "weights").indices, input_values=sparse(c, "weights").values,
        input_shape=sparse(c, "weights").dense_shape, reduction_axes=[1],
    ),
    "SparseTensorDenseMatMul": lambda c: _weights_times_table(c),
    "UnsortedSegmentSum of no rows": lambda c: c["x"] * tf.math.unsorted_segment_sum(
        table(3, 4), hidden([0, 0, 0]), 1
    ),
    "maximum of ragged": lambda c: tf.reduce_max(ragged(c, "weights"), 1),
    "weighted mean": lambda c: tf.nn.safe_embedding_lookup_sparse(
        table(6, 3), sparse(c, "ids"), sparse(c, "weights"), combiner="mean"
    ),
    "mean of ragged": lambda c: tf.reduce_mean(tf.gather(table(6, 3), ragged(c, "ids")), 1),
    "masked mean": lambda c: tf.reduce_sum(embedded(c) * mask(c)[..., None], 1)
    / (tf.reduce_sum(mask(c), 1, keepdims=True) + 1),
    "masked product": lambda c: tf.matmul(mask(c)[:, None], embedded(c))[:, 0],
    "StringSplitV2": lambda c: tf.strings.split(c["s"]).to_tensor(shape=[None, 2]),
    "SparseCross": lambda c: tf.reshape(
        tf.sparse.to_dense(tf.sparse.cross_hashed([c["s"][:, None], c["i"][:, None]], 9)), [-1]
    ),
    "Where": lambda c: tf.math.unsorted_segment_sum(
        *(lambda where: (tf.gather_nd(c["f"], where), where[:, 0]))(tf.where(c["f"] > 0)), rows(c)
    ),
}  # fmt: skip


def _sum(lists: Any) -> Any:
    return tf.reduce_sum(tf.sparse.to_dense(lists), 1)


def _weights_times_table(c: C) -> Any:
    hot = tf.SparseTensor(
        tf.stack([sparse(c, "ids").indices[:, 0], sparse(c, "ids").values], 1),
        tf.ones_like(sparse(c, "ids").values, tf.float32),
        tf.stack([tf.cast(rows(c), tf.int64), tf.constant(6, tf.int64)]),
    )
    return tf.sparse.sparse_dense_matmul(hot, table(6, 3))


def _segments(op: str, c: C) -> Any:
    """Combines each row's vectors; if the op omits last rows without a value, every row has one."""
    takes = {argument.name for argument in op_def_registry.get(op).input_arg}
    lists = sparse(c, "ids") if "num_segments" in takes else _filled(c, "ids")
    vectors = table(6, 3) if "indices" in takes else tf.gather(table(6, 3), lists.values)
    given = {"data": vectors, "indices": lists.values, "num_segments": rows(c)}
    given = {name: tensor for name, tensor in given.items() if name in takes}
    return getattr(raw, op)(segment_ids=lists.indices[:, 0], **given)


def _filled(c: C, name: str) -> Any:
    """A list feature in which every row has a value."""
    return tf.sparse.fill_empty_rows(sparse(c, name), tf.constant(0, c[name].dtype))[0]


def _checked(x: Any) -> Any:
    with tf.control_dependencies([tf.debugging.assert_less(x, 99.0)]):
        return x * 2


CONTROL: dict[str, Build] = {
    "Assert": lambda c: _checked(c["x"]),
}


def _norm(op: str, c: C) -> Any:
    return getattr(raw, op)(
        x=c["image"], scale=[1.0, 2.0], offset=[0.0, 1.0], mean=[0.5, 0.25], variance=[1.0, 4.0],
        is_training=False,
    ).y  # fmt: skip


# Variants of the ops above: older and newer versions, other combiners.
VARIANTS: dict[str, Build] = {
    **{op: partial(_segments, op) for op, of in RULES.items() if of.__name__ == "segments"},
    **{op: partial(_through_unique, op) for op, of in RULES.items() if of.__name__ == "unique"},
    **{op: partial(_norm, op) for op in (f"FusedBatchNorm{v}" for v in ("", "V2", "V3"))},
    "BatchMatMul": lambda c: raw.BatchMatMul(x=c["x"][:, None], y=c["y"][:, :, None]),
    "BatchMatMulV3": lambda c: raw.BatchMatMulV3(
        x=c["x"][:, None], y=c["y"][:, :, None], Tout=tf.float32
    ),
    "SparseCrossHashed": lambda c: tf.reshape(
        raw.SparseCrossHashed(
            indices=[], values=[], shapes=[], dense_inputs=[c["i"][:, None], c["i"][:, None]],
            num_buckets=tf.constant(9, tf.int64), strong_hash=False, salt=[1, 2],
        ).output_values, [rows(c)],
    ),
    "SparseCrossV2": lambda c: tf.reshape(
        raw.SparseCrossV2(
            indices=[], values=[], shapes=[], dense_inputs=[c["s"][:, None], c["s"][:, None]],
            sep="_",
        ).output_values, [rows(c)],
    ),
    "SparseSlice": lambda c: tf.sparse.reduce_sum(
        tf.sparse.slice(sparse(c, "weights"), [0, 1], [rows(c), 2]), 1
    ),
    "SparseReduceMax": lambda c: raw.SparseReduceMax(
        input_indices=_filled(c, "weights").indices, input_values=_filled(c, "weights").values,
        input_shape=_filled(c, "weights").dense_shape, reduction_axes=[1],
    ),
    "StringSplit": lambda c: tf.math.unsorted_segment_sum(
        *(lambda words: (tf.strings.length(words.values), words.indices[:, 0]))(
            raw_sparse(raw.StringSplit(input=c["s"], delimiter=" "))
        ), rows(c),
    ),
}  # fmt: skip


def hidden(tensor: Any) -> Any:
    """The same tensor, whose shape TensorFlow does not know."""
    return raw.PlaceholderWithDefault(input=tensor, shape=tf.TensorShape(None))


def raw_sparse(words: Any) -> Any:
    """Combines a raw op's outputs into a sparse tensor."""
    return tf.SparseTensor(*words)


INDEPENDENT = {**ELEMENTS, **SHAPES, **SUMS, **LOOKUPS, **LISTS, **CONTROL, **VARIANTS}

BEHIND: dict[str, Build] = {  # these also read the padding after lists
    "attention to nothing": lambda c: _attention(c, lambda fit: tf.where(mask(c) > 0, fit, -1e9)),
    "attention to nothing, mask added": lambda c: _attention(
        c, lambda fit: fit + (1 - mask(c)) * -1e9
    ),
    "attention with a weak mask": lambda c: _attention(
        c, lambda fit: 1e6 * fit + (1 - mask(c)) * -1e6
    ),
    "weights of nothing": lambda c: tf.reduce_sum(
        tf.nn.softmax(tf.where(mask(c) > 0, 0.0, -1e9)) ** 2, 1
    ),
    "the first weight of nothing": lambda c: tf.pad(
        tf.nn.softmax(tf.where(mask(c) > 0, 0.0, -1e9)), [[0, 0], [0, 1]]
    )[:, 0],
    "weights of values that are all hidden": lambda c: tf.reduce_sum(
        tf.nn.softmax(tf.where((mask(c) > 0) & (dense(c) > 4), 0.0, -1e9)) * mask(c), 1
    ),
    "no log of padding": lambda c: tf.reduce_sum(
        tf.math.log(tf.cast(dense(c), tf.float32)) * tf.cast(dense(c) > 0, tf.float32), 1
    ),
    "nothing divided": lambda c: tf.matmul(
        (1 / (tf.cast(dense(c, -1), tf.float32) + 1))[:, None], mask(c)[..., None]
    )[:, 0, 0],
    "distance from the mean of nothing": lambda c: tf.einsum(
        "rl,rl->r", mask(c), tf.cast(dense(c), tf.float32) - _mean(c)[:, None]
    ),
    "divided by a place": lambda c: tf.reduce_sum(mask(c) * (1 / (_places(c) - 3)), 1),
    "infinity behind the ends": lambda c: tf.reduce_sum(
        tf.where(_places(c) > 2, np.float32(np.inf), c["f"][:, None]) * mask(c), 1
    ),
    "bits of padding": lambda c: tf.reduce_sum(
        tf.bitcast(dense(c, -1), tf.float64) * tf.cast(mask(c), tf.float64), 1
    ),
}

LENGTHS: dict[str, Build] = {
    **BEHIND,
    "mean over padding": lambda c: tf.reduce_mean(embedded(c), 1),
    "softmax over padding": lambda c: tf.nn.softmax(tf.reduce_sum(embedded(c), 2)),
    "map_fn over lists": lambda c: tf.map_fn(
        lambda row: tf.reduce_mean(tf.cast(row, tf.float32)),
        dense(c), fn_output_signature=tf.float32,
    ),
    "maximum over padding": lambda c: tf.reduce_max(tf.cast(dense(c), tf.float32), 1),
    "last column": lambda c: tf.pad(dense(c, 3), [[0, 0], [0, 1]], constant_values=4)[:, -1],
    "backwards": lambda c: tf.reverse(dense(c, 3), [1]),
    "rolled": lambda c: tf.roll(dense(c, 3), 1, 1),
    "joined": lambda c: tf.strings.reduce_join(tf.strings.as_string(dense(c)), 1),
    "place among padding": lambda c: raw.LowerBound(
        sorted_inputs=tf.cumsum(dense(c, 1), 1), values=c["i"][:, None]
    ),
    "in the top of padding": lambda c: tf.math.in_top_k(c["i"], tf.cast(dense(c), tf.float32), 2),
    "length of padding": lambda c: c["f"] * tf.nn.l2_loss(tf.ones([longest(c)])),
    "width of the first values": lambda c: c["f"] * tf.cast(
        tf.shape(dense(c)[:, :3])[1], tf.float32
    ),
    "number of the first values": lambda c: tf.reduce_sum(tf.ones_like(dense(c)[:, :3]), 1),
    "sums over lists one after another": lambda c: tf.reduce_sum(
        tf.cumsum(tf.tile(dense(c, 1), [1, 2]), 1) * tf.tile(tf.cast(mask(c), tf.int64), [1, 2]), 1
    ),
    "places in lists one after another": lambda c: tf.math.unsorted_segment_sum(
        *(lambda at: (at[:, 1], at[:, 0]))(tf.where(tf.reshape(
            tf.stack([mask(c), mask(c)], 1), [rows(c), 2 * tf.shape(mask(c))[1]]
        ) > 0)), rows(c)
    ),
    "value behind the end": lambda c: tf.gather(
        tf.pad(dense(c), [[0, 0], [0, 1]], constant_values=9), _ends(c), batch_dims=1
    ),
    "reflected behind the end": lambda c: tf.gather(
        tf.pad(dense(c), [[0, 0], [0, 1]], "SYMMETRIC"), _ends(c), batch_dims=1
    ),
    "crossed with padding": lambda c: _dense_sum(raw.SparseCrossHashed(
        indices=[], values=[], shapes=[], dense_inputs=[dense(c), c["i"][:, None]],
        num_buckets=tf.constant(9, tf.int64), strong_hash=False, salt=[1, 2],
    ), c),
    "the longest as a value": lambda c: (
        c["f"] * tf.cast(sparse(c, "ids").dense_shape[1], tf.float32)
    ),
    "mask of another fill": lambda c: tf.reduce_sum(
        tf.cast(tf.not_equal(dense(c, 1), 0), tf.float32), 1
    ),
    "attention of both sides": lambda c: tf.reduce_sum(
        tf.matmul(embedded(c), embedded(c), transpose_b=True) * mask(c)[:, None], [1, 2]
    ),
    "key of a table": lambda c: c["i"] + static_table(tf.constant([5, 6, 7], tf.int64)).lookup(
        longest(c)
    ),
    "value behind the ends": lambda c: tf.pad(
        c["x"], [[0, 0], [0, 1]], constant_values=tf.cast(longest(c), tf.float32)
    ),
    "value of a hit": lambda c: tf.one_hot(c["i"], 5, on_value=longest(c)),
    "filter": lambda c: tf.nn.conv2d(
        c["image"], tf.fill([1, 1, 2, 1], tf.cast(longest(c), tf.float32)), 1, "SAME"
    ),
    "Switch": lambda c: _switched(c["x"], longest(c) > 3),
}  # fmt: skip


def longest(c: C) -> Any:
    """The length of the longest list."""
    return sparse(c, "ids").dense_shape[1]


def _places(c: C) -> Any:
    """The positions in a list."""
    return tf.cast(tf.range(tf.shape(dense(c))[1]), tf.float32)


def _by_value(c: C, combine: Callable[[Any, Any], Any]) -> Any:
    """For each row, what `combine` makes of all rows with the same value of `i`."""
    distinct = tf.unique(c["i"])
    return tf.gather(combine(distinct.idx, distinct.y), distinct.idx)


def _repeated_columns(c: C) -> Any:
    """Four numbers, each as often as there are rows, one after another."""
    return tf.reshape(tf.tile(table(4)[:, None], [1, rows(c)]), [-1])


def _ends(c: C) -> Any:
    """The position behind each row's list."""
    return tf.cast(c["ids/length"], tf.int32)[:, None]


def _dense_sum(crossed: Any, c: C) -> Any:
    """The sum of each row's crossed values."""
    return tf.math.unsorted_segment_sum(
        crossed.output_values, crossed.output_indices[:, 0], rows(c)
    )


def _attention(c: C, masked: Any) -> Any:
    """Attention over a list's ids and their positions."""
    place = tf.cast(tf.range(tf.shape(dense(c))[1]), tf.float32)
    keys = embedded(c) + place[None, :, None]
    return tf.einsum("rl,rld->rd", tf.nn.softmax(masked(tf.reduce_sum(keys, 2))), keys)


def _mean(c: C) -> Any:
    """The mean of a list's ids; NaN for an empty list."""
    return tf.reduce_sum(tf.cast(dense(c), tf.float32) * mask(c), 1) / tf.reduce_sum(mask(c), 1)


def _switched(x: Any, condition: Any) -> Any:
    other, this = raw.Switch(data=x, pred=condition)
    return raw.Merge(inputs=[other, this * 2]).output


MIXING: dict[str, Build] = {
    "entries of a mask of values": lambda c: tf.reshape(
        tf.boolean_mask(c["x"], c["x"] > 0), [rows(c), -1]
    ),
    "counts of more than there are": lambda c: tf.math.bincount(
        tf.cast(c["i"], tf.int32), minlength=rows(c)
    ),
    "counts of the next row": lambda c: tf.math.bincount(
        tf.cast(sparse(c, "ids").indices[:, 0], tf.int32) + 1, minlength=rows(c)
    ),
    "as many bins as the largest value": lambda c: tf.math.bincount(
        tf.cast(tf.stack([c["i"], c["i"]], 1), tf.int32), minlength=2, maxlength=5, axis=-1
    ),
    "negated bound": lambda c: c["f"] * tf.ones([tf.maximum(
        rows(c), 2 - tf.cast(tf.reduce_max(tf.range(rows(c))), tf.int32)
    )]),
    "softmax": lambda c: tf.nn.softmax(c["f"]),
    "softmax, turned": lambda c: tf.transpose(tf.nn.softmax(tf.transpose(c["x"]))),
    "sum": lambda c: c["f"] / tf.reduce_sum(c["f"]),
    "mean of all": lambda c: c["x"] - tf.reduce_mean(c["x"]),
    "top 100": lambda c: tf.where(
        c["f"] >= tf.math.top_k(c["f"], tf.minimum(100, rows(c))).values[-1], c["f"], -9.0
    ),
    "sort": lambda c: tf.sort(c["f"]),
    "an entry for each other row": lambda c: tf.gather(c["x"], c["i"], axis=1),
    "whether any list has a value": lambda c: (
        c["f"] - tf.reduce_min(tf.ones_like(sparse(c, "weights").values))
    ),
    "cumulative sum": lambda c: tf.cumsum(c["f"]),
    "ranks": lambda c: tf.reduce_sum(tf.cast(c["f"][:, None] > c["f"], tf.float32), 1),
    "many rows": lambda c: tf.where(rows(c) > 100, c["f"], -c["f"]),
    "share of the rows": lambda c: c["f"] / tf.cast(rows(c), tf.float32),
    "row number": lambda c: c["f"] * tf.cast(tf.range(rows(c)), tf.float32),
    "first row": lambda c: c["x"] - c["x"][0],
    "last row": lambda c: c["x"] - c["x"][-1:],
    "reversed": lambda c: c["x"][::-1],
    "row by a value": lambda c: tf.gather(c["x"], tf.minimum(c["i"], 0)),
    "training": lambda c: raw.FusedBatchNormV3(
        x=c["image"], scale=[1.0, 2.0], offset=[0.0, 1.0], mean=[], variance=[], is_training=True
    ).y,
    "counts": lambda c: tf.gather(*(lambda u: (u.count, u.idx))(tf.unique_with_counts(c["i"]))),
    "sum by a value": lambda c: tf.gather(
        tf.math.unsorted_segment_sum(c["f"], c["i"], 4), c["i"]
    ),
    "reshaped": lambda c: tf.reshape(c["x"], [4, -1])[:, :1] * tf.ones([4, 1]),
    "splits of a request": lambda c: tf.reduce_sum(
        tf.RaggedTensor.from_row_splits(c["f"], tf.concat([[0], c["i"]], 0), validate=False), 1
    ),
    "attention": lambda c: tf.matmul(c["x"], tf.matmul(c["x"], c["x"], transpose_a=True)),
    "branch on any": lambda c: tf.cond(
        tf.reduce_any(c["i"] > 7), lambda: tf.nn.softmax(c["f"]), lambda: c["f"]
    ),
    "scalar": lambda c: tf.reduce_max(c["f"]),
    "constant": lambda c: tf.constant([1.0]),
    "mask of whether lists have values": lambda c: tf.reduce_sum(
        tf.cast(tf.sequence_mask(tf.cast(tf.cast(c["ids/length"], tf.bool), tf.int64)), tf.int64)
        * dense(c, 3), 1
    ),
    "lists divided by their longest": lambda c: tf.reduce_sum(tf.sparse.to_dense(tf.sparse.reshape(
        tf.SparseTensor(
            sparse(c, "ids").indices, sparse(c, "ids").values,
            tf.stack([tf.cast(rows(c), tf.int64), 2 * longest(c)]),
        ), tf.stack([tf.cast(rows(c), tf.int64), 4, -1]),
    )), 2),
    "rows behind the last list": lambda c: tf.nn.embedding_lookup_sparse(
        table(6, 3), sparse(c, "ids"), None, combiner="sum"
    ),
    "number of all elements": lambda c: (
        c["f"] * tf.cast(tf.size(sparse(c, "ids").values), tf.float32)
    ),
    "maximum of a value": lambda c: c["i"] + tf.reduce_max(c["i"]),
    "columns up to that number": lambda c: tf.reduce_sum(c["x"][:, : rows(c)], 1),
    "one up to another number": lambda c: c["f"] + tf.reduce_sum(table(1)[: rows(c) - 5]),
    "columns from that number on": lambda c: tf.reduce_sum(c["x"][:, rows(c):], 1),
    "value of a hit": lambda c: tf.one_hot(c["i"], 5, on_value=rows(c)),
    "value of no hit": lambda c: tf.one_hot(c["i"], 5, off_value=rows(c)),
    "value put around": lambda c: tf.pad(
        c["x"], [[0, 0], [1, 0]], constant_values=tf.cast(rows(c), tf.float32)
    ),
    "default of a table": lambda c: raw.LookupTableFindV2(
        table_handle=static_table(tf.constant([5, 6, 7], tf.int64)).resource_handle,
        keys=c["i"], default_value=tf.cast(rows(c), tf.int64),
    ),
    "place among the rows": lambda c: tf.searchsorted(tf.sort(c["f"]), c["f"]),
    "place among sums over the rows": lambda c: tf.searchsorted(tf.cumsum(c["f"]), c["f"]),
    "diagonals": lambda c: tf.linalg.band_part(c["image"][..., 0], rows(c), 0),
    "number of buckets": lambda c: tf.reshape(
        raw.SparseCrossHashed(
            indices=[], values=[], shapes=[], dense_inputs=[c["i"][:, None], c["i"][:, None]],
            num_buckets=tf.cast(rows(c), tf.int64), strong_hash=False, salt=[1, 2],
        ).output_values, [rows(c)],
    ),
    "position in a table": lambda c: c["f"] * tf.gather_nd(table(9), [rows(c)]),
    "as many numbers of a table as rows": lambda c: c["f"] + tf.slice(table(99), [0], [rows(c)]),
    "sum of rows with an equal value": lambda c: _by_value(
        c, lambda ids, y: tf.math.unsorted_segment_sum(c["f"], ids, tf.size(y))
    ),
    "count of rows with an equal value": lambda c: _by_value(
        c, lambda ids, y: tf.math.bincount(ids, minlength=tf.size(y), maxlength=tf.size(y))
    ),
    "sum over pairs of rows": lambda c: tf.math.unsorted_segment_sum(
        tf.reshape(c["f"][:, None] * c["f"], [-1]),
        tf.reshape(tf.tile(tf.range(rows(c))[None], [rows(c), 1]), [-1]), rows(c),
    ),
    "place among columns as long as the rows": lambda c: c["f"] * tf.cast(
        tf.argmax(_repeated_columns(c)), tf.float32
    ),
    "entry of columns as long as the rows": lambda c: c["f"] * raw.TensorListGetItem(
        input_handle=raw.TensorListFromTensor(
            tensor=_repeated_columns(c), element_shape=tf.constant([], tf.int32)
        ), index=3, element_shape=tf.constant([], tf.int32), element_dtype=tf.float32,
    ),
    "no numbers, grouped": lambda c: c["f"] + tf.reduce_sum(tf.reshape(c["x"][:, 4:], [-1, 2])),
}  # fmt: skip


REFUSED: dict[str, str] = {  # independent, but no class of ops covers them
    "Atan2": "its vectorised kernel answers infinities otherwise than its scalar one",
    "Pow": "as Atan2",
    "Bincount of rows": "counts of values",
    "weighted mean": "ids and weights may differ in length in two rows, whose sum is equal",
}

# Loops, conditions and their lists, linear algebra, row numbers as indices, and ops that combine
# rows if they are given so; and convolutions, whose padding meets infinite weights in some kernels.
NO_CLASS = {
    "Bitcast", "Conv2D", "If", "InTopKV2", "L2Loss", "MatrixDiagPartV3", "MatrixDiagV3",
    "MatrixInverse", "MatrixTriangularSolve", "ReduceJoin", "ReverseSequence", "ReverseV2", "Roll",
    "ScatterNd", "StatelessIf", "StatelessRandomUniformV2", "StatelessWhile",
    "TensorListFromTensor", "TensorListReserve", "TensorListStack", "TensorScatterAdd",
    "TensorScatterUpdate", "While",
}  # fmt: skip


def test_ops_that_no_class_covers_are_refused() -> None:
    assert NO_CLASS.isdisjoint(RULES)


# Masks and padding of 0 may hide what fills a list's end, but not from NaN and infinity.
NAMED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(["SparseToDense", "masked mean", "masked product"], ("ids",)),
    **dict.fromkeys(["RaggedTensorToTensor", "SparseReorder", "SparseReshape"], ("weights",)),
}


@cache
def _graph(name: str) -> Graph:
    return Graph({**INDEPENDENT, **LENGTHS}[name])


@pytest.mark.parametrize("name", sorted(INDEPENDENT.keys() - REFUSED.keys()))
def test_independent_models_score_rows_alike(name: str) -> None:
    graph = _graph(name)
    assert graph.found.why_not == ""
    assert graph.found.rows
    assert graph.found.own_length == NAMED.get(name, ())
    assert all(graph.scores_rows_alike(seed) for seed in range(3))


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_class_covers_is_refused_by_name(name: str) -> None:
    found = _graph(name).found
    assert not found.rows
    assert re.search(r" \(\w+ [\w/]+\)$", found.why_not), found.why_not


@pytest.mark.parametrize("name", LENGTHS)
def test_results_that_depend_on_the_longest_list_are_reported_and_equal_at_one_length(
    name: str,
) -> None:
    graph = _graph(name)
    if not graph.found.rows:
        assert name in LENGTHS_REFUSED, graph.found.why_not
        return
    assert graph.found.own_length == ("ids",)
    assert all(graph.scores_rows_alike(seed, equal_lengths=True) for seed in range(3))


LENGTHS_REFUSED = {
    "Switch", "backwards", "bits of padding", "filter", "in the top of padding", "joined",
    "length of padding", "map_fn over lists", "reflected behind the end", "rolled",
}  # fmt: skip


@pytest.mark.parametrize("name", BEHIND)
def test_padding_after_the_ends_changes_scores_at_other_lengths(name: str) -> None:
    assert not all(_graph(name).scores_rows_alike(seed) for seed in range(3))


@pytest.mark.parametrize("name", MIXING)
def test_models_that_mix_rows_are_refused_with_the_reason(name: str) -> None:
    found = Graph(MIXING[name]).found
    assert not found.rows
    assert found.why_not


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (lambda c: _of_unique_floats(c["f"]), "0 and -0 count as one value"),
        (lambda c: tf.cast(tf.cast(c["f"] * 1e9, tf.int8), tf.float32), "int8"),
    ],
    ids=["unique floats", "floats cast to a small integer"],
)
def test_what_answers_by_position_for_some_values_is_refused(build: Build, reason: str) -> None:
    found = Graph(build).found
    assert not found.rows
    assert reason in found.why_not


def _of_unique_floats(values: Any) -> Any:
    distinct, index = tf.unique(values)
    return tf.gather(distinct, index)


def test_an_op_without_a_rule_is_named() -> None:
    graph = Graph(lambda c: tf.linalg.qr(c["image"][..., 0]).r)
    assert not graph.found.rows
    assert graph.found.why_not.startswith("no rule says how this op treats rows (Qr ")


def test_a_squeeze_that_may_drop_rows_or_lists_is_refused() -> None:
    def build(c: C) -> Any:
        left = tf.squeeze(tf.cast(dense(c), tf.float32)[..., None] * table(3))
        return tf.reduce_sum(tf.reshape(tf.reduce_sum(left, 1), [rows(c), -1]) ** 2, 1)

    graph = Graph(build)
    columns = draw(np.random.default_rng(1), 3)
    columns["ids/length"] = np.array([1, 1, 2])
    together = graph.run(columns)[:2]
    apart = graph.run({name: column[:2] for name, column in columns.items()})
    assert not np.allclose(together, apart)
    assert "it has no `axis`" in graph.found.why_not


_NO_CASE = {
    "LookupTableFind": "takes a reference, of TensorFlow 1; the kernel is LookupTableFindV2's",
}


def test_every_rule_has_a_case() -> None:
    seen = set[str]()
    for name in [*INDEPENDENT, *LENGTHS]:
        seen |= _graph(name).ops
    assert RULES.keys() - seen == _NO_CASE.keys()
