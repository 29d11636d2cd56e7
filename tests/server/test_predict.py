"""Messages of refused Predicts; tensors and parameters are read as TensorFlow reads them.

For every dtype, compares a served identity model with tf.io.parse_tensor, which calls
Tensor::FromProto.
"""

import json
import math
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tensorflow.core.framework import tensor_pb2

from ..models.saving import save_graph
from .inference_client import InferenceClient
from .servers import AS_SAVED, BATCHING, Stubs
from .test_rest import Rest

v1 = tf.compat.v1


def error_of(call):
    """The (code, message) of the RpcError that call() raises."""
    with pytest.raises(grpc.RpcError) as raised:
        call()
    return raised.value.code(), raised.value.details()


INT32 = st.integers(-(2**31), 2**31 - 1)
FLOAT32 = st.floats(width=32)
SMALL_FIELDS = {
    "float_val": FLOAT32,
    "double_val": st.floats(),
    "int_val": INT32,
    "string_val": st.binary(max_size=20),
    "scomplex_val": FLOAT32,
    "int64_val": st.integers(-(2**63), 2**63 - 1),
    "bool_val": st.booleans(),
    "dcomplex_val": st.floats(),
    "half_val": INT32,
    "uint32_val": st.integers(0, 2**32 - 1),
    "uint64_val": st.integers(0, 2**64 - 1),
}
OWN_FIELD = {
    "float32": "float_val",
    "float64": "double_val",
    "string": "string_val",
    "complex64": "scomplex_val",
    "int64": "int64_val",
    "bool": "bool_val",
    "complex128": "dcomplex_val",
    "float16": "half_val",
    "bfloat16": "half_val",
    "uint32": "uint32_val",
    "uint64": "uint64_val",
}
NOT_SENDABLE = {"resource", "variant"}
DTYPES = [
    dtype
    for dtype in (tf.as_dtype(number) for number in range(1, 33))
    if dtype.name not in NOT_SENDABLE
]
BELOW_A_BYTE = {"int4", "uint4", "int2", "uint2"}
ENCODINGS = ["typed fields", "tensor_content"]


def identity_model() -> tuple[tf.Module, dict[str, tf.types.experimental.ConcreteFunction]]:
    """A module, and a signature y = x of any shape for each dtype, named after it."""
    signatures = {}
    for dtype in DTYPES:
        identity = tf.function(lambda x: {"y": tf.identity(x)})
        signatures[dtype.name] = identity.get_concrete_function(tf.TensorSpec(None, dtype, "x"))
    return tf.Module(), signatures


@pytest.fixture(scope="module")
def stubs_by_encoding(tmp_path_factory, serve) -> dict[str, Stubs]:
    """By encoding: stubs of a server whose answers use typed fields or tensor_content."""
    base_path = tmp_path_factory.mktemp("identity")
    module, signatures = identity_model()
    tf.saved_model.save(module, str(base_path / "1"), signatures=signatures)
    stubs = serve(base_path), serve(base_path, *AS_SAVED)
    return dict(zip(ENCODINGS, stubs, strict=True))


@st.composite
def tensor_protos(draw: st.DrawFn) -> tensor_pb2.TensorProto:
    """A random TensorProto that is usually valid: its values fit its shape."""
    dtype = draw(st.sampled_from(DTYPES))
    dims = draw(st.lists(st.integers(0, 4), max_size=3))
    proto = tensor_pb2.TensorProto(dtype=dtype.as_datatype_enum)
    for size in dims:
        proto.tensor_shape.dim.add(size=size)
    proto.version_number = draw(st.sampled_from([0, 7]))
    count = math.prod(dims)
    if draw(st.integers(0, 2)) == 0:
        proto.tensor_content = draw(contents(dtype, count))
    elif dtype.name.startswith("float8"):
        proto.float8_val = draw(st.binary(max_size=count + 1))
    else:
        fill(draw, proto, OWN_FIELD.get(dtype.name, "int_val"), count)
    if draw(st.integers(0, 9)) == 0:
        fill(draw, proto, draw(st.sampled_from(sorted(SMALL_FIELDS))), 3)
    return proto


def fill(draw: st.DrawFn, proto: tensor_pb2.TensorProto, field: str, count: int) -> None:
    """Adds values to a repeated field: at most `count` elements or, sometimes, one more."""
    per_element = 2 if field in ("scomplex_val", "dcomplex_val") else 1
    most = count * per_element + draw(st.sampled_from([0, 0, 0, 0, 1]))
    getattr(proto, field).extend(draw(st.lists(SMALL_FIELDS[field], max_size=most)))


def contents(dtype: tf.DType, count: int) -> st.SearchStrategy[bytes]:
    """tensor_content of `count` elements; sometimes its size is wrong."""
    if dtype == tf.string:
        texts = st.lists(st.binary(max_size=20), min_size=count, max_size=count)
        return texts.map(lambda strings: bytes(map(len, strings)) + b"".join(strings))
    exact = st.binary(min_size=count * dtype.size, max_size=count * dtype.size)
    if dtype == tf.bool:
        bools = st.lists(st.booleans(), min_size=count, max_size=count).map(bytes)
        return st.one_of(bools, bools, exact)
    return st.one_of(exact, exact, exact, st.binary(max_size=9))


def more_is_sent_than_fits(proto: tensor_pb2.TensorProto) -> bool:
    """Whether values exceed the shape; TensorFlow drops the excess, the server refuses it."""
    count = math.prod(dim.size for dim in proto.tensor_shape.dim)
    if proto.tensor_content:
        return count == 0
    if tf.as_dtype(proto.dtype).name.startswith("float8"):
        return len(proto.float8_val) > count
    field = OWN_FIELD.get(tf.as_dtype(proto.dtype).name, "int_val")
    per_element = 2 if field in ("scomplex_val", "dcomplex_val") else 1
    return len(getattr(proto, field)) // per_element > count


def some_is_ignored(proto: tensor_pb2.TensorProto) -> bool:
    """Whether TensorFlow ignores values: in another dtype's field, or beside tensor_content."""
    name = tf.as_dtype(proto.dtype).name
    own = "float8_val" if name.startswith("float8") else OWN_FIELD.get(name, "int_val")
    sent = {field for field in (*SMALL_FIELDS, "float8_val") if getattr(proto, field)}
    return bool(sent - ({own} if not proto.tensor_content else set()))


def understood_by_tensorflow(proto: tensor_pb2.TensorProto) -> np.ndarray | None:
    """The array that TensorFlow reads; None if it refuses the proto."""
    try:
        tensor = tf.io.parse_tensor(proto.SerializeToString(), tf.as_dtype(proto.dtype))
    except (tf.errors.InvalidArgumentError, tf.errors.InternalError):
        return None
    return np.asarray(tensor.numpy())


def assert_same(got: np.ndarray, expected: np.ndarray) -> None:
    """Checks that dtype, shape and all bits are equal, including the payloads of NaNs."""
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    if got.dtype == object:
        assert got.tolist() == expected.tolist()
    elif got.dtype.name in BELOW_A_BYTE:  # the upper bits of each byte have no meaning
        np.testing.assert_array_equal(got.astype(int), expected.astype(int))
    else:
        assert got.tobytes() == expected.tobytes()


@pytest.mark.parametrize("encoding", ENCODINGS)
@settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(proto=tensor_protos())
def test_the_server_understands_what_tensorflow_understands(stubs_by_encoding, encoding, proto):
    stubs = stubs_by_encoding[encoding]
    request = stubs.request({}, signature_name=tf.as_dtype(proto.dtype).name)
    request.inputs["x"].CopyFrom(proto)
    expected = understood_by_tensorflow(proto)
    if expected is None or more_is_sent_than_fits(proto) or some_is_ignored(proto):
        with pytest.raises(grpc.RpcError) as raised:
            stubs.prediction.Predict(request, timeout=120)
        assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert '"x"' in raised.value.details()
        return
    answer = stubs.prediction.Predict(request, timeout=120).outputs["y"]
    assert_same(understood_by_tensorflow(answer), expected)
    assert bool(answer.tensor_content) == (encoding == "tensor_content" and expected.size > 0)


X = np.ones([2, 4], np.float32)
HALVES = [[0.5] * 4] * 2
NO_SCALAR = "The second input must be a scalar, but it has shape [2]"


def save_parameters(folder: Path) -> None:
    """Saves signatures that each take rows x [?,4] and one parameter of unknown rank."""

    @tf.function
    def nested(training: Any, x: Any) -> Any:
        return tf.cond(training, lambda: tf.cond(training, lambda: 0 * x, lambda: -x), lambda: x)

    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 4], "x")
        keep = v1.placeholder(tf.float32, None, "keep")
        training = v1.placeholder(tf.bool, None, "training")
        branch = v1.placeholder(tf.int32, None, "branch")
        times = v1.placeholder(tf.float32, None, "times")
        any_shape = [tf.TensorShape(None)]
        (count,) = tf.while_loop(
            lambda done: tf.less(done, times), lambda done: [done + 1], [0.0], any_shape
        )
        cases = [lambda: x, lambda: -x]
        made = {
            "serving_default": (
                {"x": x, "keep": keep, "training": training},
                tf.cond(training, lambda: 0 * x, lambda: keep * x),
            ),
            "nested": ({"x": x, "training": training}, nested(training, x)),
            "branches": ({"x": x, "branch": branch}, tf.switch_case(branch, cases)),
            "loop": ({"x": x, "times": times}, count * x),
        }
        signatures = {
            name: v1.saved_model.predict_signature_def(inputs, {"y": output})
            for name, (inputs, output) in made.items()
        }
        save_graph(folder, session, signatures)


@pytest.fixture(scope="module", params=[(), AS_SAVED, BATCHING], name="parameters")
def _parameters(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, serve: Any
) -> Stubs:
    """Stubs of a model with parameters of unknown rank, which are passed unchanged."""
    base_path = tmp_path_factory.mktemp("parameters")
    save_parameters(base_path / "1")
    return serve(base_path, *request.param)


@pytest.mark.parametrize("keep", [0.5, [0.5]])
def test_a_parameter_passes_as_it_came(parameters: Stubs, keep: Any) -> None:
    inputs = {"x": X, "keep": np.float32(keep), "training": np.array(False)}
    assert parameters.predict(inputs)["y"].tolist() == HALVES
    client = InferenceClient(parameters.server)
    assert client.infer(inputs, model=parameters.model).as_numpy("y").tolist() == HALVES
    body = json.dumps({"inputs": {name: value.tolist() for name, value in inputs.items()}})
    _, content = Rest(parameters).ask("POST", ":predict", body)
    assert json.loads(content)["outputs"] == HALVES


@pytest.mark.parametrize(
    ("signature", "given", "expected"),
    [
        ("serving_default", {"keep": np.float32([0.5]), "training": np.array([False])}, HALVES),
        ("serving_default", {"keep": np.float32(0.5), "training": np.array([[False]])}, HALVES),
        ("nested", {"training": np.array([False])}, [[1.0] * 4] * 2),
        ("nested", {"training": np.array([True])}, [[0.0] * 4] * 2),
        ("loop", {"times": np.float32([3])}, [[3.0] * 4] * 2),
        (
            "serving_default",
            {"keep": np.float32(0.5), "training": np.array([False, False])},
            NO_SCALAR,
        ),
        ("nested", {"training": np.array([False, True])}, NO_SCALAR),
        ("branches", {"branch": np.int32([0, 1])}, NO_SCALAR),
        ("loop", {"times": np.float32([0, 3])}, NO_SCALAR),
    ],
)
def test_a_condition_must_hold_exactly_one_value(
    parameters: Stubs, signature: str, given: dict[str, Any], expected: Any
) -> None:
    call = partial(parameters.predict, {"x": X, **given}, signature_name=signature)
    if expected == NO_SCALAR:
        assert NO_SCALAR in error_of(call)[1]
    else:
        assert call()["y"].tolist() == expected
