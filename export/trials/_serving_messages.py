"""TensorFlow Serving's request messages, without depending on its package.

Only the fields needed here, with TensorFlow Serving's numbers and types but our own names:
tensorflow_serving/apis/{model,predict,classification,regression,inference,prediction_log,input}.proto.
"""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from tensorflow.core.framework import tensor_pb2

_PACKAGE = "colcast.export"
_FILE = "colcast/export/serving_messages.proto"
_Field = descriptor_pb2.FieldDescriptorProto


def _add_message(parent: Any, name: str, fields: dict[str, tuple[int, str]]) -> Any:
    message = parent.add(name=name)
    for field, (number, kind) in fields.items():
        added = message.field.add(name=field, number=number, label=_Field.LABEL_OPTIONAL)
        if kind == "string":
            added.type = _Field.TYPE_STRING
        else:
            added.type, added.type_name = _Field.TYPE_MESSAGE, kind
    return message


def _file() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name=_FILE, package=_PACKAGE, syntax="proto3")
    file.dependency.append(tensor_pb2.DESCRIPTOR.name)
    model_spec = {"name": (1, "string"), "signature_name": (3, "string")}
    _add_message(file.message_type, "ModelSpec", model_spec)
    request = _add_message(
        file.message_type, "PredictRequest", {"model_spec": (1, f".{_PACKAGE}.ModelSpec")}
    )
    entry = _add_message(
        request.nested_type,
        "InputsEntry",
        {"key": (1, "string"), "value": (2, f".{tensor_pb2.TensorProto.DESCRIPTOR.full_name}")},
    )
    entry.options.map_entry = True
    request.field.add(
        name="inputs",
        number=2,
        label=_Field.LABEL_REPEATED,
        type=_Field.TYPE_MESSAGE,
        type_name=f".{_PACKAGE}.PredictRequest.InputsEntry",
    )
    request.field.add(
        name="output_filter", number=3, label=_Field.LABEL_REPEATED, type=_Field.TYPE_STRING
    )
    _add_message(file.message_type, "PredictLog", {"request": (1, f".{_PACKAGE}.PredictRequest")})
    lists = file.message_type.add(name="ExampleListWithContext")
    for name, number, label in (
        ("examples", 1, _Field.LABEL_REPEATED),
        ("context", 2, _Field.LABEL_OPTIONAL),
    ):
        lists.field.add(name=name, number=number, label=label, type=_Field.TYPE_BYTES)
    # An ExampleList is one without a context. Requests to Classify, Regress and MultiInference have
    # their input in the same field.
    one_list = f".{_PACKAGE}.ExampleListWithContext"
    either = {"example_list": (1, one_list), "example_list_with_context": (2, one_list)}
    _add_message(file.message_type, "Input", either)
    _add_message(file.message_type, "InputRequest", {"input": (2, f".{_PACKAGE}.Input")})
    _add_message(file.message_type, "InputLog", {"request": (1, f".{_PACKAGE}.InputRequest")})
    logs = {
        "classify_log": (2, f".{_PACKAGE}.InputLog"),
        "regress_log": (3, f".{_PACKAGE}.InputLog"),
        "multi_inference_log": (4, f".{_PACKAGE}.InputLog"),
        "predict_log": (6, f".{_PACKAGE}.PredictLog"),
    }
    _add_message(file.message_type, "PredictionLog", logs)
    return file


_pool = descriptor_pool.Default()
_pool.AddSerializedFile(_file().SerializeToString())


def _message(name: str) -> Any:
    return message_factory.GetMessageClass(_pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


PredictRequest = _message("PredictRequest")
PredictionLog = _message("PredictionLog")
ExampleListWithContext = _message("ExampleListWithContext")
"""A list of serialized tf.Examples."""
