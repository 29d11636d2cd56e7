"""Reads the records of TFRecord files."""

import gzip
import struct
from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf
from colcast.export.graph._errors import ExportError

_LENGTH = struct.Struct("<Q")
_AROUND = 16  # bytes of a record without its data: the length, and a checksum of each
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
        raise ExportError(f"{file} is not a TFRecord file that can be read: {problem}")


def _whole_records(file: Path) -> tuple[int, str]:
    """The number of complete records, and what is wrong with the next one.

    Checked first, because TensorFlow's reader allocates as many bytes as a record claims, which can
    end the process.
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
    except (OSError, EOFError) as error:
        return count, str(error)
