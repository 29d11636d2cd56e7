"""The records of TFRecord files, and the tensors in recorded messages."""

import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from colcast.client.tfrecord import read_records
from colcast.export.graph._errors import ExportError
from tensorflow.core.framework.tensor_pb2 import TensorProto


def records(file: Path) -> Iterator[bytes]:
    """The records of a TFRecord file; gzipped if its name ends in .gz.

    Raises:
      ExportError: the file is not a TFRecord file, is damaged, or ends within a record.
    """
    if not file.is_file():
        raise ExportError(f"{file} is not a file; expected a TFRecord file")
    try:
        yield from read_records(file)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise ExportError(f"{file} is not a readable TFRecord file: {error}") from error


def tensors(inputs: Mapping[str, Any]) -> dict[str, TensorProto]:
    """The inputs of a request of `colcast.client.messages` in TensorFlow's class."""
    return {
        name: TensorProto.FromString(tensor.SerializeToString()) for name, tensor in inputs.items()
    }
