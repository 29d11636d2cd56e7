"""TensorFlow's and TensorFlow Serving's messages as protobuf classes, without their packages.

`parse` reads a message, `new` makes one. The classes live in a descriptor pool of their own,
because TensorFlow's files may already be in protobuf's default pool, where a second registration
would fail. protobuf is imported on first use.
"""

from functools import lru_cache
from typing import Any

from colcast.client._errors import DecodeError

# Each message's fields: number and type, in brackets if repeated, in braces for the values of a map
# from text. The numbers are those of TensorFlow's and TensorFlow Serving's .proto files; fields
# that nobody reads are left out. Some fields are declared as undecoded bytes: float_val and
# double_val, which NumPy then reads without a copy per value, and entries of a tf.Example's
# features, so that equal ones are found without parsing them.
_TABLE: dict[str, dict[str, tuple[int, str]]] = {
    "BytesList": {"value": (1, "[bytes]")},
    "FloatList": {"value": (1, "[float]")},
    "Int64List": {"value": (1, "[int64]")},
    "Feature": {
        "bytes_list": (1, "BytesList"),
        "float_list": (2, "FloatList"),
        "int64_list": (3, "Int64List"),
    },
    "FeatureEntry": {"key": (1, "bytes"), "value": (2, "bytes")},
    "Features": {"feature": (1, "[bytes]")},
    "Example": {"features": (1, "Features")},
    "Examples": {"examples": (1, "[Example]")},
    "ExampleListWithContext": {"examples": (1, "[bytes]"), "context": (2, "bytes")},
    "Dim": {"size": (1, "int64")},
    "TensorShapeProto": {"dim": (2, "[Dim]"), "unknown_rank": (3, "bool")},
    "TensorProto": {
        "dtype": (1, "int32"),
        "tensor_shape": (2, "TensorShapeProto"),
        "tensor_content": (4, "bytes"),
        "float_val": (5, "[bytes]"),
        "double_val": (6, "[bytes]"),
        "int_val": (7, "[int32]"),
        "string_val": (8, "[bytes]"),
        "int64_val": (10, "[int64]"),
        "bool_val": (11, "[bool]"),
        "half_val": (13, "[int32]"),
        "uint32_val": (16, "[uint32]"),
        "uint64_val": (17, "[uint64]"),
    },
    "TensorInfo": {"dtype": (2, "int32"), "tensor_shape": (3, "TensorShapeProto")},
    "SignatureDef": {
        "inputs": (1, "{TensorInfo}"),
        "outputs": (2, "{TensorInfo}"),
        "method_name": (3, "string"),
        "defaults": (4, "{TensorProto}"),
    },
    "SignatureDefMap": {"signature_def": (1, "{SignatureDef}")},
    "Any": {"value": (2, "bytes")},
    "Int64Value": {"value": (1, "int64")},
    "ModelSpec": {
        "name": (1, "string"),
        "version": (2, "Int64Value"),
        "signature_name": (3, "string"),
        "version_label": (4, "string"),
    },
    "PredictRequest": {
        "model_spec": (1, "ModelSpec"),
        "inputs": (2, "{TensorProto}"),
        "output_filter": (3, "[string]"),
    },
    "PredictLog": {"request": (1, "PredictRequest")},
    "PredictionLog": {"classify_log": (2, "[bytes]"), "predict_log": (6, "PredictLog")},
    "Input": {
        "example_list": (1, "ExampleListWithContext"),
        "example_list_with_context": (2, "ExampleListWithContext"),
    },
    "InputRequest": {"input": (2, "Input")},
    "InputLog": {"request": (1, "InputRequest")},
    # A PredictionLog of Classify, Regress or MultiInference, whose input has the same field.
    "ExamplesLog": {
        "classify_log": (2, "InputLog"),
        "regress_log": (3, "InputLog"),
        "multi_inference_log": (4, "InputLog"),
    },
    "Class": {"label": (1, "bytes"), "score": (2, "float")},
    "Classifications": {"classes": (1, "[Class]")},
    "ClassificationResult": {"classifications": (1, "[Classifications]")},
    "ClassificationResponse": {"result": (1, "ClassificationResult")},
    "Regression": {"value": (1, "float")},
    "RegressionResult": {"regressions": (1, "[Regression]")},
    "RegressionResponse": {"result": (1, "RegressionResult")},
    "GetModelMetadataResponse": {"model_spec": (1, "ModelSpec"), "metadata": (2, "{Any}")},
    "PredictResponse": {"outputs": (1, "{TensorProto}"), "model_spec": (2, "ModelSpec")},
    "AttrValue": {
        "s": (2, "bytes"),
        "type": (6, "int32"),
        "shape": (7, "TensorShapeProto"),
    },
    "NodeDef": {"op": (2, "string"), "attr": (5, "{AttrValue}")},
    "FunctionDef": {"node_def": (3, "[NodeDef]")},
    "FunctionDefLibrary": {"function": (1, "[FunctionDef]")},
    "GraphDef": {"node": (1, "[NodeDef]"), "library": (2, "FunctionDefLibrary")},
    "MetaGraphDef": {"graph_def": (2, "GraphDef")},
    "SavedModel": {"meta_graphs": (2, "[MetaGraphDef]")},
}


def parse(name: str, data: bytes) -> Any:
    """Reads a message.

    Raises:
        DecodeError: the bytes are not such a message.
    """
    try:
        return _classes()[name].FromString(data)
    except Exception as error:  # protobuf's DecodeError
        raise DecodeError(f"not a valid {name}: {error}") from None


def new(name: str) -> Any:
    """An empty message."""
    return _classes()[name]()


def shape_of(shape: Any) -> tuple[int | None, ...] | None:
    """The sizes in a parsed TensorShapeProto, None for an unknown one; None for an unknown rank."""
    if shape.unknown_rank:
        return None
    return tuple(dim.size if dim.size >= 0 else None for dim in shape.dim)


def has_unknown(message: Any) -> bool:
    """Whether a message was read with fields, or encodings of fields, that the table lacks."""
    from google.protobuf.unknown_fields import UnknownFieldSet

    return len(UnknownFieldSet(message)) > 0


@lru_cache(maxsize=1)
def _classes() -> dict[str, Any]:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(
        name="colcast/messages.proto", package="colcast", syntax="proto3"
    )
    for name, fields in _TABLE.items():
        made = file.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            if kind[0] == "{":
                entry = made.nested_type.add(name=f"{field.title().replace('_', '')}Entry")
                entry.options.map_entry = True
                _add_field(entry, "key", 1, "string")
                _add_field(entry, "value", 2, kind[1:-1])
                kind = f"[{name}.{entry.name}]"
            _add_field(made, field, number, kind)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = {name: pool.FindMessageTypeByName(f"colcast.{name}") for name in _TABLE}
    return {name: message_factory.GetMessageClass(kind) for name, kind in found.items()}


def _add_field(message: Any, name: str, number: int, kind: str) -> None:
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

    repeated, kind = kind[0] == "[", kind.strip("[]")
    label = Field.LABEL_REPEATED if repeated else Field.LABEL_OPTIONAL
    added = message.field.add(name=name, number=number, label=label)
    if kind[0].isupper():
        added.type, added.type_name = Field.TYPE_MESSAGE, f".colcast.{kind}"
    else:
        added.type = Field.Type.Value(f"TYPE_{kind.upper()}")
