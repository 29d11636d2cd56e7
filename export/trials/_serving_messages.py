"""TensorFlow Serving's messages, without its package, and the records of TFRecord files.

Only the fields needed here, with TensorFlow Serving's numbers and types but our own names:
tensorflow_serving/apis/{model,predict,classification,regression,inference,prediction_log,input}.proto.
"""

import gzip
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf
from colcast.export.graph._errors import ExportError
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from tensorflow.core.framework import tensor_pb2

_PACKAGE = "colcast.export"
_FILE = "colcast/export/serving_messages.proto"
_Field = descriptor_pb2.FieldDescriptorProto
_TENSOR = tensor_pb2.TensorProto.DESCRIPTOR.full_name
# The fields of each message: number and type, in brackets if repeated. An ExampleList is an
# ExampleListWithContext without a context. Requests to Classify, Regress and MultiInference have
# their input in the same field.
_MESSAGES: dict[str, dict[str, tuple[int, str]]] = {
    "ModelSpec": {"name": (1, "string"), "signature_name": (3, "string")},
    "PredictRequest": {
        "model_spec": (1, "ModelSpec"),
        "inputs": (2, "[PredictRequest.InputsEntry]"),
        "output_filter": (3, "[string]"),
    },
    "PredictLog": {"request": (1, "PredictRequest")},
    "ExampleListWithContext": {"examples": (1, "[bytes]"), "context": (2, "bytes")},
    "Input": {
        "example_list": (1, "ExampleListWithContext"),
        "example_list_with_context": (2, "ExampleListWithContext"),
    },
    "InputRequest": {"input": (2, "Input")},
    "InputLog": {"request": (1, "InputRequest")},
    "PredictionLog": {
        "classify_log": (2, "InputLog"),
        "regress_log": (3, "InputLog"),
        "multi_inference_log": (4, "InputLog"),
        "predict_log": (6, "PredictLog"),
    },
}


def _add_message(parent: Any, name: str, fields: dict[str, tuple[int, str]]) -> Any:
    message = parent.add(name=name)
    for field, (number, kind) in fields.items():
        repeated, kind = kind[0] == "[", kind.strip("[]")
        added = message.field.add(name=field, number=number)
        added.label = _Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
        if kind in ("string", "bytes"):
            added.type = _Field.Type.Value(f"TYPE_{kind.upper()}")
        else:
            added.type = _Field.TYPE_MESSAGE
            added.type_name = f".{kind}" if kind == _TENSOR else f".{_PACKAGE}.{kind}"
    return message


def _file() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name=_FILE, package=_PACKAGE, syntax="proto3")
    file.dependency.append(tensor_pb2.DESCRIPTOR.name)
    made = {name: _add_message(file.message_type, name, of) for name, of in _MESSAGES.items()}
    entry = {"key": (1, "string"), "value": (2, _TENSOR)}
    nested = made["PredictRequest"].nested_type
    _add_message(nested, "InputsEntry", entry).options.map_entry = True
    return file


_pool = descriptor_pool.Default()
_pool.AddSerializedFile(_file().SerializeToString())


def _message(name: str) -> Any:
    return message_factory.GetMessageClass(_pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


PredictRequest = _message("PredictRequest")
PredictionLog = _message("PredictionLog")
ExampleListWithContext = _message("ExampleListWithContext")
"""A list of serialized tf.Examples."""


_LENGTH = struct.Struct("<Q")
_AROUND = 16  # bytes of a record's length (8), and of the checksums of length and data (4 each)
_MOST = 1 << 62


def records(file: Path) -> Iterator[bytes]:
    """The records of a TFRecord file; gzipped if its name ends in .gz.

    Raises:
      ExportError: the file is not a TFRecord file, is damaged, or ends within a record.
    """
    if not file.is_file():
        raise ExportError(f"{file} is not a file; expected a TFRecord file")
    whole, problem = _whole_records(file)
    compression = "GZIP" if file.suffix == ".gz" else None
    try:
        dataset = tf.data.TFRecordDataset(str(file), compression)
        yield from dataset.take(whole).as_numpy_iterator()
    except tf.errors.OpError as error:
        problem = str(error)
    if problem:
        raise ExportError(f"{file} is not a readable TFRecord file: {problem}")


def _whole_records(file: Path) -> tuple[int, str]:
    """The number of complete records, and the error in the next one.

    TensorFlow's reader must not see a damaged record first: it allocates as many bytes as the
    record claims, which can end the process.
    """
    count = at = 0
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as opened:
            while len(header := opened.read(_LENGTH.size)) == _LENGTH.size:
                (length,) = _LENGTH.unpack(header)
                end = at + _AROUND + length
                is_whole = length < _MOST and opened.seek(end - 1) == end - 1 and opened.read(1)
                if not is_whole:
                    return count, f"record {count} claims {length} bytes, more than follow"
                count, at = count + 1, end
            return count, "it ends within a record" if header else ""
    except (OSError, EOFError, zlib.error) as error:
        return count, str(error)
