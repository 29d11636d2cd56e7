"""Classifies ops by type; late expansion uses no other op lists.

export/rows describes how ops treat rows.

The independence rule decides which ops may move to the user part, and trial runs may contradict it.
These lists only prevent moves (control flow, effects, ops that may round differently) or choose a
cheaper form (broadcasting, split columns).
"""

from collections.abc import Iterator

from colcast.export.graph._nodes import FlatGraph, NodeDef, functions_of, producer

# Ops that must not move: control flow, effects, random numbers.
# Outputs of TF1 control flow may be dead, or belong to a loop's frame.

TF1_CONTROL_FLOW = {"Switch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond"}
TF1_CONTROL_FLOW |= {f"Ref{op}" for op in TF1_CONTROL_FLOW}

_CONTROL_FLOW = {"If", "While", "Case"}
_CONTROL_FLOW |= {f"Stateless{op}" for op in _CONTROL_FLOW} | {"For"} | TF1_CONTROL_FLOW
_RANDOM = ("Random", "Multinomial", "TruncatedNormal", "Shuffle", "UniformCandidate", "Dropout")
# Registered as stateful, although it does not matter when or how often these ops run.
_ONLY_READS = {
    "Assert", "BoostedTreesEnsembleResourceHandleOp", "BoostedTreesPredict", "HashTable",
    "HashTableV2", "IsVariableInitialized", "LookupTableFind", "LookupTableFindV2",
    "LookupTableSize", "LookupTableSizeV2", "MutableDenseHashTable", "MutableDenseHashTableV2",
    "MutableHashTable", "MutableHashTableV2", "ReadVariableOp", "RefIdentity", "RefSelect",
    "ResourceGather", "ResourceGatherNd", "VarHandleOp", "VarIsInitializedOp", "Variable",
    "VariableShape", "VariableV2",
}  # fmt: skip

_FROM_CHECKPOINTS = {
    "MutableDenseHashTable", "MutableDenseHashTableV2", "MutableHashTable", "MutableHashTableV2",
    "MutableHashTableOfTensors", "MutableHashTableOfTensorsV2", "VarHandleOp", "Variable",
    "VariableV2",
}  # fmt: skip

# Exact ops compute the same bits for a row alone as among N. They copy, look up, hash, compare, or
# compute each element in a way that IEEE 754 rounds uniquely. Other ops may differ: a matrix
# product or a sum over a row is added in another order at another shape, and exp, log and similar
# functions round differently in vector registers than in the scalar remainder. Sums over segments
# are added row by row (TensorFlow's core/kernels/segment_reduction_ops_impl.h).

_EXACT_SHAPES = {
    "BroadcastTo", "Concat", "ConcatV2", "EnsureShape", "ExpandDims", "Fill", "Identity",
    "IdentityN", "OnesLike", "Pack", "Pad", "PadV2", "Placeholder", "PlaceholderWithDefault",
    "PreventGradient", "Range", "Rank", "Reshape", "Reverse", "ReverseV2", "Shape", "ShapeN",
    "Size", "Slice", "Snapshot", "Split", "SplitV", "Squeeze", "StopGradient", "StridedSlice",
    "Tile", "Transpose", "Unpack", "ZerosLike",
}  # fmt: skip
_EXACT_LOOKUPS = {
    "Bucketize", "Gather", "GatherNd", "GatherV2", "LookupTableFind", "LookupTableFindV2", "OneHot",
    "ReadVariableOp", "ResourceGather", "ResourceGatherNd", "Select", "SelectV2", "Unique",
    "UniqueV2", "Where",
}  # fmt: skip
_EXACT_SPARSE = {
    "RaggedTensorToSparse", "RaggedTensorToTensor", "SparseConcat", "SparseCross",
    "SparseCrossHashed", "SparseCrossV2", "SparseFillEmptyRows", "SparseReorder", "SparseReshape",
    "SparseSegmentMean", "SparseSegmentMeanWithNumSegments", "SparseSegmentSqrtN",
    "SparseSegmentSqrtNWithNumSegments", "SparseSegmentSum", "SparseSegmentSumWithNumSegments",
    "SparseSlice", "SparseToDense",
}  # fmt: skip
_EXACT_STRINGS = {
    "AsString", "RegexFullMatch", "RegexReplace", "StaticRegexFullMatch", "StaticRegexReplace",
    "StringJoin", "StringLength", "StringLower", "StringSplitV2", "StringStrip",
    "StringToHashBucket", "StringToHashBucketFast", "StringToHashBucketStrong", "StringToNumber",
    "StringUpper", "Substr",
}  # fmt: skip
_EXACT_ELEMENTS = {
    "Abs", "Add", "AddN", "AddV2", "BiasAdd", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Cast",
    "Ceil", "ClipByValue", "Div", "DivNoNan", "Equal", "Floor", "FloorDiv", "FloorMod", "Greater",
    "GreaterEqual", "IsFinite", "IsInf", "IsNan", "Less", "LessEqual", "LogicalAnd", "LogicalNot",
    "LogicalOr", "Maximum", "Minimum", "Mod", "Mul", "MulNoNan", "Neg", "NotEqual", "RealDiv",
    "Relu", "Relu6", "Round", "Sign", "Square", "SquaredDifference", "Sub", "TruncateDiv",
    "TruncateMod",
}  # fmt: skip
EXACT = frozenset(_EXACT_SHAPES | _EXACT_LOOKUPS | _EXACT_SPARSE | _EXACT_STRINGS | _EXACT_ELEMENTS)

# Ops that broadcast a first dimension of 1 themselves.
BROADCASTING = {
    "Add", "AddV2", "Atan2", "BatchMatMulV2", "BatchMatMulV3", "BitwiseAnd", "BitwiseOr",
    "BitwiseXor", "Div", "DivNoNan", "Equal", "FloorDiv", "FloorMod", "Greater", "GreaterEqual",
    "Less", "LessEqual", "LogicalAnd", "LogicalOr", "Maximum", "Minimum", "Mod", "Mul", "MulNoNan",
    "NotEqual", "Pow", "RealDiv", "SelectV2", "SquaredDifference", "Sub", "TruncateDiv",
    "TruncateMod", "Xdivy", "Xlogy",
}  # fmt: skip

# Ops that compute each element, and so each column, separately.
FOR_EACH_ELEMENT = {
    "Abs", "Cast", "CheckNumerics", "Elu", "Erf", "Exp", "Expm1", "Floor", "Identity", "IsNan",
    "LeakyRelu", "Log", "Log1p", "Neg", "PreventGradient", "Reciprocal", "Relu", "Relu6", "Round",
    "Rsqrt", "Selu", "Sigmoid", "Sign", "Snapshot", "Softplus", "Softsign", "Sqrt", "Square",
    "StopGradient", "Tanh",
}  # fmt: skip
OF_TWO_ELEMENTS = {"Add", "AddV2", "BiasAdd", "Div", "Maximum", "Minimum", "Mul", "RealDiv", "Sub"}


def why_pinned(node: NodeDef, graph: FlatGraph) -> str | None:
    """Why an op must keep running at N rows, as in the model; None if it need not."""
    for inner in _with_functions(node, graph, set()):
        if inner.op in _CONTROL_FLOW:
            return f"control flow ({inner.op})"
        if is_random(inner.op):
            return f"random op ({inner.op})"
        if _changes_something(inner, graph):
            return f"stateful op ({inner.op})"
    return None


def computed_from_weights(graph: FlatGraph) -> set[str]:
    """The nodes that read values from a checkpoint, which retraining may change."""
    found = set[str]()
    for name, node in graph.nodes.items():
        if not found.isdisjoint(map(producer, node.input)) or any(
            inner.op in _FROM_CHECKPOINTS for inner in _with_functions(node, graph, set())
        ):
            found.add(name)
    return found


def why_inexact(node: NodeDef) -> str | None:
    """Why an op may compute other bits at one row than at N rows; None if it cannot."""
    return None if node.op in EXACT else f"may round differently at one row ({node.op})"


def has_effect(node: NodeDef, graph: FlatGraph) -> bool:
    """Whether it matters when or how often an op runs; False for random ops and assertions."""
    return any(
        _changes_something(inner, graph) and not is_random(inner.op)
        for inner in _with_functions(node, graph, set())
    )


def is_unsteady(node: NodeDef, graph: FlatGraph) -> bool:
    """Whether an op may give another output on the same inputs, or changes something."""
    return any(
        is_random(inner.op) or _changes_something(inner, graph)
        for inner in _with_functions(node, graph, set())
    )


def may_fail(node: NodeDef, graph: FlatGraph) -> bool:
    """Whether an op is an assertion or calls one."""
    return any(inner.op == "Assert" for inner in _with_functions(node, graph, set()))


def _changes_something(node: NodeDef, graph: FlatGraph) -> bool:
    if node.op in _ONLY_READS or node.op in TF1_CONTROL_FLOW or functions_of(node):
        return False
    op = graph.op_defs.get(node.op)
    return bool(op.is_stateful) or any(argument.is_ref for argument in op.input_arg)


def is_random(op: str) -> bool:
    return any(word in op for word in _RANDOM)


def _with_functions(node: NodeDef, graph: FlatGraph, seen: set[str]) -> Iterator[NodeDef]:
    """A node and the nodes of every function it calls."""
    yield node
    for name in (*functions_of(node), node.op):
        if name in graph.library and name not in seen:
            seen.add(name)
            for inner in graph.library[name].node_def:
                yield from _with_functions(inner, graph, seen)


def is_compiled(op: str) -> bool:
    """Whether TensorFlow compiles an op of this type with XLA when it first runs at a shape."""
    return op.startswith("Xla")


MODULE = "XlaCallModule"
"""The op that runs a whole function compiled by XLA; `jax2tf.convert` writes it by default."""
