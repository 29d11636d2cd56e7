"""Reads TFRecord files of tf.Examples as batches of columns."""

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from colcast.client import DTYPES, Feature, InputError, Kind
from colcast.client.data_set import entries_of_examples
from colcast.client.tfrecord import read_records
from colcast.items._convert import Columns
from colcast.items._features import ItemFeature

_BATCH_ROWS = 1 << 12


def batches_of_records(
    path: Path, features: Mapping[str, ItemFeature], key: str
) -> Iterator[Columns]:
    """The rows of a file; reads only the features and the key of each tf.Example.

    Raises:
        InputError: the file is not a TFRecord file, or a record is not a tf.Example; the message
            names the record.
    """
    wanted = {name: one.feature for name, one in features.items()}
    wanted.setdefault(key, Feature(key, DTYPES["int64"], Kind.SINGLE, ()))
    rows = 0
    records = read_records(path)
    try:
        while examples := list(islice(records, _BATCH_ROWS)):
            try:
                yield entries_of_examples(wanted, examples)
            except InputError as error:
                raise error.below(rows) from error
            rows += len(examples)
    except (ValueError, OSError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"cannot read {path}: {error}") from error
