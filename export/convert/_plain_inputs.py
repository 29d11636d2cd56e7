"""Reads a signature that takes plain tensors: each input is a feature."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
from colcast.export.convert._features import DTYPES, Feature, Kind
from colcast.export.convert._parse_cut import ParseCut, check_features
from colcast.export.convert._parse_op import ParsedFeature
from colcast.export.graph._errors import ExportError
from colcast.export.graph._nodes import canonical, producer


def find_inputs(signature: str, signature_def: Any, nodes: Mapping[str, Any]) -> ParseCut:
    """Returns a cut right after the placeholders of a signature that parses nothing.

    Args:
      signature: its name.
      signature_def: its inputs and outputs.
      nodes: the MetaGraph's nodes by name.

    Raises:
      ExportError: a columnar request cannot carry one of the inputs.
    """
    parsed: list[ParsedFeature] = []
    owners: dict[str, str] = {}  # placeholder -> input
    for name, info in sorted(signature_def.inputs.items()):
        feature = _feature(signature, name, info)
        node = producer(info.name)
        if nodes[node].op not in ("Placeholder", "PlaceholderWithDefault"):
            raise ExportError(
                f"input {name!r} of signature {signature!r} feeds {node!r}"
                f" ({nodes[node].op}), expected a placeholder"
            )
        if (first := owners.setdefault(node, name)) != name:
            raise ExportError(
                f"inputs {first!r} and {name!r} of signature {signature!r} share one placeholder"
            )
        parsed.append(ParsedFeature(feature, (canonical(info.name),)))
    if not any(p.feature.kind is not Kind.WHOLE for p in parsed):
        raise ExportError(
            f"no input of signature {signature!r} has one row per candidate, [None, ...]; it takes"
            f" {', '.join(p.feature.describe() for p in parsed) or 'nothing'}"
        )
    check_features(parsed)
    return ParseCut(serialized=[], parse_nodes=list(owners), parsed=parsed)


def _feature(signature: str, name: str, info: Any) -> Feature:
    dtype, shape = tf.dtypes.as_dtype(info.dtype).name, tf.TensorShape(info.tensor_shape)
    declared = f"input {name!r} of signature {signature!r} is {dtype} {shape}"
    if dtype not in DTYPES:
        raise ExportError(f"{declared}, expected one of {', '.join(DTYPES)}")
    if shape.rank is None:
        raise ExportError(f"{declared}: its rank is unknown; export it with an input signature")
    sizes = tuple(shape)
    if not sizes or sizes[0] is not None:
        kind, inner = Kind.WHOLE, sizes
    elif len(sizes) > 1 and sizes[1] is None:
        kind, inner = Kind.FIXED_LEN_SEQUENCE, sizes[2:]
    else:
        kind, inner = Kind.FIXED_LEN, sizes[1:]
    if None in inner:
        raise ExportError(
            f"{declared}: besides the rows, only the next dimension, for lists, may be unknown"
        )
    return Feature(name, kind, dtype, inner)
