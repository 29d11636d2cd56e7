"""Tables whose rows are summed as lists are mapped; scores and errors are TensorFlow's."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tensorflow as tf

from ..models.saving import save_graph, save_version
from .metrics_page import status
from .servers import AS_SAVED, Stubs

ROWS = 60
EMPTY = -1000
"""The id of a place in a list that has no value."""
v1 = tf.compat.v1
SPEC = [
    tf.TensorSpec([None, None], tf.int64, name="ids"),
    tf.TensorSpec([None, None], tf.float32, name="weights"),
]
Body = Callable[[Any, Any], Any]


def sparse(ids: Any, weights: Any) -> tuple[Any, Any]:
    """The lists' ids and weights, without empty places."""
    where = tf.where(tf.not_equal(ids, EMPTY))
    shape = tf.shape(ids, tf.int64)
    return tuple(tf.SparseTensor(where, tf.gather_nd(x, where), shape) for x in (ids, weights))


def full(ids: Any, weights: Any) -> tuple[Any, Any]:
    """As `sparse`, with one more place in each row, so that no list is empty."""
    ids = tf.concat([ids, tf.ones_like(ids[:, :1])], 1)
    return sparse(ids, tf.concat([weights, tf.ones_like(weights[:, :1])], 1))


def save(version: Path, seed: int = 0) -> None:
    """Saves signatures that take `ids` and `weights` [N, list] and read tables of their own."""
    random = np.random.default_rng(seed)
    module = tf.Module()
    # This one byte at the start gives all later tensors odd addresses in the file.
    module.aa = tf.Variable(tf.constant([1], tf.int8), name="aa")
    module.tables = {}
    bodies: dict[str, Body] = {}

    def add(name: str, body: Callable[..., Any], *row: int, dtype: Any = tf.float32) -> None:
        values = tf.cast(random.normal(size=[ROWS, *(row or (7,))]), dtype)
        module.tables[name] = table = tf.Variable(values, name=name)
        bodies[name] = lambda ids, weights: body(table, ids, weights)

    def parts(name: str, strategy: str) -> None:
        module.tables[name] = several = [
            tf.Variable(random.normal(size=[ROWS // 3, 5]).astype("f4"), name=f"{name}_{i}")
            for i in range(3)
        ]
        bodies[name] = lambda ids, weights: v1.nn.safe_embedding_lookup_sparse(
            several, sparse(ids, weights)[0], combiner="mean", partition_strategy=strategy
        )

    for combiner in ("sum", "mean", "sqrtn"):

        def safe(table: Any, ids: Any, weights: Any, combiner: str = combiner) -> Any:
            return tf.nn.safe_embedding_lookup_sparse(
                table, sparse(ids, weights)[0], combiner=combiner
            )

        def weighted(table: Any, ids: Any, weights: Any, combiner: str = combiner) -> Any:
            return tf.nn.safe_embedding_lookup_sparse(
                table, *sparse(ids, weights), combiner=combiner, default_id=3
            )

        def fast(table: Any, ids: Any, weights: Any, combiner: str = combiner) -> Any:
            return tf.nn.embedding_lookup_sparse(
                table, full(ids, weights)[0], None, combiner=combiner, allow_fast_lookup=True
            )

        def of_ragged(table: Any, ids: Any, weights: Any, combiner: str = combiner) -> Any:
            lists = full(ids, weights)[0]
            rows = tf.RaggedTensor.from_value_rowids(
                lists.values, lists.indices[:, 0], lists.dense_shape[0]
            )
            return tf.nn.embedding_lookup_sparse(table, rows, None, combiner=combiner)

        add(f"safe_{combiner}", safe)
        add(f"weighted_{combiner}", weighted, 8)
        add(f"fast_{combiner}", fast, 33)
        add(f"ragged_{combiner}", of_ragged, 1)
    for dtype in (tf.float16, tf.bfloat16, tf.float64):
        add(f"safe_{dtype.name}", safe, 9, dtype=dtype)

    def mean(table: Any, ids: Any, weights: Any) -> Any:
        return tf.nn.embedding_lookup_sparse(table, full(ids, weights)[0], None, combiner="mean")

    def int32(table: Any, ids: Any, weights: Any) -> Any:
        lists = full(ids, weights)[0]
        lists = tf.SparseTensor(lists.indices, tf.cast(lists.values, tf.int32), lists.dense_shape)
        return tf.nn.embedding_lookup_sparse(table, lists, None, combiner="sum")

    def normed(table: Any, ids: Any, weights: Any) -> Any:
        lists = full(ids, weights)[0]
        return tf.nn.embedding_lookup_sparse(table, lists, None, combiner="mean", max_norm=0.5)

    def shared(table: Any, ids: Any, weights: Any) -> Any:
        one = safe(table, ids, weights)
        other = tf.nn.safe_embedding_lookup_sparse(
            table, sparse(ids[:, ::2], weights[:, ::2])[0], combiner="sum"
        )
        first = tf.nn.embedding_lookup(table, full(ids, weights)[0].values[:1])
        return tf.concat([one, other, tf.tile(first, [tf.shape(ids)[0], 1])], 1)

    def also_returned(table: Any, ids: Any, weights: Any) -> Any:
        lists = full(ids, weights)[0]
        distinct, positions = tf.unique(lists.values)
        rows = tf.gather(table, distinct)
        summed = tf.raw_ops.SparseSegmentSum(
            data=rows, indices=positions, segment_ids=lists.indices[:, 0]
        )
        return summed + tf.reduce_sum(rows, 0)

    def counted(table: Any, ids: Any, weights: Any) -> Any:
        lists = sparse(ids, weights)[0]
        distinct, positions = tf.unique(lists.values, tf.int64)
        return tf.raw_ops.SparseSegmentMeanWithNumSegments(
            data=tf.gather(table, distinct),
            indices=positions,
            segment_ids=tf.cast(lists.indices[:, 0], tf.int32),
            num_segments=tf.shape(ids)[0],
        )

    def other_positions(table: Any, ids: Any, weights: Any) -> Any:
        lists = full(ids, weights)[0]
        distinct, positions = tf.unique(lists.values)
        return tf.raw_ops.SparseSegmentSum(
            data=tf.gather(table, distinct),
            indices=tf.reverse(positions, [0]),
            segment_ids=lists.indices[:, 0],
        )

    def descending(table: Any, ids: Any, weights: Any) -> Any:
        lists = full(ids, weights)[0]
        return tf.raw_ops.SparseSegmentSum(
            data=table, indices=lists.values, segment_ids=-lists.indices[:, 0]
        )

    def in_function(table: Any, ids: Any, weights: Any) -> Any:
        return tf.function(lambda x, y: mean(table, x, y))(ids, weights)

    def in_branch(table: Any, ids: Any, weights: Any) -> Any:
        return tf.cond(
            tf.size(ids) > 6,
            lambda: mean(table, ids, weights),
            lambda: fast(table, ids, weights, "sum"),
        )

    def old_gather(table: Any, ids: Any, weights: Any) -> Any:
        ids = tf.where(tf.equal(ids, EMPTY), tf.zeros_like(ids), ids)
        return tf.raw_ops.Gather(params=table.read_value(), indices=ids) * weights[:, :, None]

    for body in (mean, int32, normed, shared, also_returned, counted, other_positions, descending):
        add(body.__name__, body)
    for body in (in_function, in_branch, old_gather):
        add(body.__name__, body)
    add("cubes", mean, 3, 2)
    parts("div", "div")
    parts("mod", "mod")
    save_version(
        version,
        module,
        {name: tf.function(body, input_signature=SPEC) for name, body in bodies.items()},
    )


def save_partitioned(version: Path, seed: int = 0) -> None:
    """Saves a TensorFlow 1 graph whose table the checkpoint has in three slices."""
    with tf.Graph().as_default(), v1.Session() as session:
        ids, weights = (v1.placeholder(one.dtype, one.shape, one.name) for one in SPEC)
        outputs = {}
        for strategy in ("div", "mod"):
            table = v1.get_variable(
                f"table_{strategy}",
                shape=[ROWS, 6],
                initializer=v1.random_normal_initializer(seed=seed),
                partitioner=v1.fixed_size_partitioner(3),
                use_resource=True,
            )
            outputs[strategy] = v1.nn.safe_embedding_lookup_sparse(
                table, sparse(ids, weights)[0], combiner="sqrtn", partition_strategy=strategy
            )
        session.run(v1.global_variables_initializer())
        signatures = {
            name: v1.saved_model.predict_signature_def(
                {"ids": ids, "weights": weights}, {"output_0": output}
            )
            for name, output in outputs.items()
        }
        save_graph(version, session, signatures)


SAVED = {"saved": save, "partitioned": save_partitioned}
RANDOM = np.random.default_rng(5)


def drawn(rows: int, width: int, empty: float = 0.3) -> dict[str, Any]:
    ids = RANDOM.integers(0, ROWS, size=(rows, width))
    ids[RANDOM.random(ids.shape) < empty] = EMPTY
    return {"ids": ids, "weights": RANDOM.uniform(0.1, 2, size=ids.shape).astype("f4")}


def hostile_weights() -> dict[str, Any]:
    inputs = drawn(6, 8)
    inputs["weights"][::2, ::3] = np.float32([0, -1, np.nan])[:, None]
    return inputs


REQUESTS = {
    "lists": drawn(5, 6),
    "one": drawn(1, 1, 0),
    "of lengths around those that kernels unroll": {
        "ids": np.where(
            np.arange(40) < np.arange(40)[:, None], RANDOM.integers(0, ROWS, 40), EMPTY
        ),
        "weights": RANDOM.uniform(0, 2, size=(40, 40)).astype("f4"),
    },
    "long": drawn(2, 500),
    "one id": {"ids": np.full((3, 50), 7), "weights": np.ones((3, 50), "f4")},
    "empty": drawn(4, 3, 1),
    "no places": drawn(3, 0),
    "no rows": drawn(0, 4),
    "weights": hostile_weights(),
    "negative": {"ids": np.int64([[-1, 2], [3, -7]]), "weights": np.ones((2, 2), "f4")},
    "beyond the end": {"ids": np.int64([[1, 2], [ROWS, 3]]), "weights": np.ones((2, 2), "f4")},
    "far beyond": {"ids": np.int64([[2**62, 2]]), "weights": np.ones((1, 2), "f4")},
}
# More than an op gathers without looking for repeated ids.
HUGE = drawn(8, 40000)


@pytest.fixture(scope="module", params=SAVED, name="version")
def _version(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    version = tmp_path_factory.mktemp(request.param) / "1"
    SAVED[request.param](version)
    return version


@pytest.fixture(scope="module", params=[(), AS_SAVED], name="stubs")
def _stubs(request: pytest.FixtureRequest, version: Path, serve: Callable[..., Stubs]) -> Stubs:
    return serve(version.parent, *request.param)


@pytest.fixture(scope="module", name="original")
def _original(version: Path) -> Any:
    # The loaded object must live as long as its signatures are called.
    loaded = tf.saved_model.load(str(version))
    return {name: (one, loaded) for name, one in loaded.signatures.items()}


def answer_of(original: Any, name: str, inputs: dict[str, Any]) -> Any:
    """The answer in TensorFlow; None if it refuses the request."""
    function, _ = original[name]
    try:
        (answer,) = function(**{key: tf.constant(value) for key, value in inputs.items()}).values()
    except tf.errors.InvalidArgumentError:
        return None
    return answer.numpy()


def tables_of(stubs: Stubs) -> dict[str, str]:
    """The tables on the status page, and why each is in memory; "" for one that is mapped."""
    (model,) = (one for one in status(stubs.server)["models"] if one["name"] == stubs.model)
    (version,) = model["versions"]
    return {one["name"]: one["in_memory_because"] for one in version["tables"]["tables"]}


def test_every_table_is_mapped(stubs: Stubs, original: Any):
    tables = tables_of(stubs)
    assert len(tables) >= len(original)
    assert not any(tables.values()), tables


@pytest.mark.parametrize("request_name", REQUESTS)
def test_scores_have_tensorflows_bits(stubs: Stubs, original: Any, request_name: str):
    inputs = REQUESTS[request_name]
    compare(stubs, original, inputs, list(original))


def test_repeated_ids_of_a_huge_request_are_read_once(stubs: Stubs, original: Any):
    wide = {"fast_sum", "fast_mean", "safe_float64", "div"} & set(original)
    compare(stubs, original, HUGE, sorted(wide))


def compare(stubs: Stubs, original: Any, inputs: dict[str, Any], names: list[str]) -> None:
    for name in names:
        expected = answer_of(original, name, inputs)
        if expected is None:
            with pytest.raises(grpc.RpcError) as error:
                stubs.predict(inputs, signature_name=name)
            assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT, name
            continue
        (got,) = stubs.predict(inputs, signature_name=name).values()
        assert got.shape == expected.shape, name
        assert np.asarray(got).tobytes() == expected.tobytes(), name


def test_an_id_out_of_range_is_named_with_its_table(stubs: Stubs, original: Any):
    inputs = REQUESTS["beyond the end"]
    # The others' ids are refused before they are looked up, or their segments are wrong, too.
    for name in {*original} - {"div", "descending"}:
        with pytest.raises(grpc.RpcError) as error:
            stubs.predict(inputs, signature_name=name)
        details = error.value.details()
        assert " is not in [0, " in details, (name, details)
        assert "{{node " in details, (name, details)
