"""Ops that give the same bits for a row, whether it comes alone or among N.

They copy, look up, hash, compare, or do for each element what IEEE 754 rounds in one way only. What
is not here may not: a matrix product or a sum over a row is added up in another order at another
shape, and exp, log and their like round differently in a vector register and beside it. Sums over
segments are added row by row (TensorFlow's core/kernels/segment_reduction_ops_impl.h).
"""

_SHAPES = {
    "BroadcastTo", "Concat", "ConcatV2", "EnsureShape", "ExpandDims", "Fill", "Identity",
    "IdentityN", "OnesLike", "Pack", "Pad", "PadV2", "Placeholder", "PlaceholderWithDefault",
    "PreventGradient", "Range", "Rank", "Reshape", "Reverse", "ReverseV2", "Shape", "ShapeN",
    "Size", "Slice", "Snapshot", "Split", "SplitV", "Squeeze", "StopGradient", "StridedSlice",
    "Tile", "Transpose", "Unpack", "ZerosLike",
}  # fmt: skip
_LOOKUPS = {
    "Bucketize", "Gather", "GatherNd", "GatherV2", "LookupTableFind", "LookupTableFindV2", "OneHot",
    "ReadVariableOp", "ResourceGather", "ResourceGatherNd", "Select", "SelectV2", "Unique",
    "UniqueV2", "Where",
}  # fmt: skip
_SPARSE = {
    "RaggedTensorToSparse", "RaggedTensorToTensor", "SparseConcat", "SparseCross",
    "SparseCrossHashed", "SparseCrossV2", "SparseFillEmptyRows", "SparseReorder", "SparseReshape",
    "SparseSegmentMean", "SparseSegmentMeanWithNumSegments", "SparseSegmentSqrtN",
    "SparseSegmentSqrtNWithNumSegments", "SparseSegmentSum", "SparseSegmentSumWithNumSegments",
    "SparseSlice", "SparseToDense",
}  # fmt: skip
_STRINGS = {
    "AsString", "RegexFullMatch", "RegexReplace", "StaticRegexFullMatch", "StaticRegexReplace",
    "StringJoin", "StringLength", "StringLower", "StringSplitV2", "StringStrip",
    "StringToHashBucket", "StringToHashBucketFast", "StringToHashBucketStrong", "StringToNumber",
    "StringUpper", "Substr",
}  # fmt: skip
_ELEMENTS = {
    "Abs", "Add", "AddN", "AddV2", "BiasAdd", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Cast",
    "Ceil", "ClipByValue", "Div", "DivNoNan", "Equal", "Floor", "FloorDiv", "FloorMod", "Greater",
    "GreaterEqual", "IsFinite", "IsInf", "IsNan", "Less", "LessEqual", "LogicalAnd", "LogicalNot",
    "LogicalOr", "Maximum", "Minimum", "Mod", "Mul", "MulNoNan", "Neg", "NotEqual", "RealDiv",
    "Relu", "Relu6", "Round", "Sign", "Square", "SquaredDifference", "Sub", "TruncateDiv",
    "TruncateMod",
}  # fmt: skip

EXACT_OPS = frozenset(_SHAPES | _LOOKUPS | _SPARSE | _STRINGS | _ELEMENTS)
