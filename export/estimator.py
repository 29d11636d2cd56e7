"""Writes columnar signatures when an Estimator is exported (TensorFlow 2.15 or older).

    estimator.export_saved_model(base, columnar_serving_input_receiver_fn(feature_spec))

These signatures take the same columns as the signatures that `colcast export` adds.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf
from colcast.export.convert._features import Feature
from colcast.export.convert._parse_cut import check_features
from colcast.export.convert._parse_op import (
    PARSE_OPS,
    ParsedFeature,
    parsed_tensors,
    placeholders,
    read_parse_op,
)
from colcast.export.graph._errors import ExportError
from colcast.export.graph._nodes import ancestors, canonical, producer
from tensorflow.core.protobuf import saved_model_pb2


def columnar_serving_input_receiver_fn(feature_spec: Mapping[str, Any]) -> Callable[[], Any]:
    """Returns the function that `estimator.export_saved_model` expects; it takes no arguments.

    The function makes a placeholder for each column and, from the placeholders, the dense, sparse
    and ragged tensors that `tf.io.parse_example` would return.

    Args:
      feature_spec: as for `tf.io.parse_example`, without labels.

    Raises:
      ExportError: there is no feature, or two columns have the same name.
    """
    spec = _Spec(feature_spec)
    check_features(spec.parsed)

    def serving_input_receiver() -> Any:
        columns: dict[str, Any] = {}
        for feature in spec.features:
            columns.update(placeholders(feature))
        return tf.estimator.export.ServingInputReceiver(spec.tensors(columns), columns)

    return serving_input_receiver


def add_signature_defaults(saved_model: str | Path, feature_spec: Mapping[str, Any]) -> None:
    """Writes the defaults of a feature_spec into the columnar signatures of an exported model.

    Estimators cannot write `SignatureDef.defaults`, which servers use for missing inputs.

    Args:
      saved_model: the result of `estimator.export_saved_model`.
      feature_spec: the argument of `columnar_serving_input_receiver_fn`.
    """
    folder = Path(tf.compat.as_str_any(saved_model))
    file = folder / "saved_model.pb"
    proto = saved_model_pb2.SavedModel.FromString(file.read_bytes())
    for feature in _Spec(feature_spec).features:
        defaults = feature.defaults().items()
        for signature in (
            one for graph in proto.meta_graphs for one in graph.signature_def.values()
        ):
            for key, default in defaults if feature.name in signature.inputs else ():
                dtype = tf.dtypes.as_dtype(signature.inputs[key].dtype)
                signature.defaults[key].CopyFrom(tf.make_tensor_proto(default, dtype))
    file.write_bytes(proto.SerializeToString(deterministic=True))


class _Spec:
    """A feature_spec, parsed once in a separate graph to learn its features."""

    def __init__(self, feature_spec: Mapping[str, Any]) -> None:
        with tf.Graph().as_default() as graph:
            examples = tf.compat.v1.placeholder(tf.string, [None])
            self._structure = tf.io.parse_example(examples, dict(feature_spec))
        self._graph_def = graph.as_graph_def()
        nodes = {node.name: node for node in self._graph_def.node}
        self._parse_node = next(name for name, node in nodes.items() if node.op in PARSE_OPS)
        parse_node = nodes[self._parse_node]
        self.parsed: list[ParsedFeature] = read_parse_op(
            parse_node, nodes, self._graph_def.versions
        )
        self.features: list[Feature] = [parsed.feature for parsed in self.parsed]
        if not self.features:
            raise ExportError("the feature_spec has no feature")

    def tensors(self, columns: Mapping[str, Any]) -> Any:
        """The tensors of tf.io.parse_example for the spec, built from columns."""
        made: dict[str, Any] = {}
        for parsed in self.parsed:
            tensors = parsed_tensors(parsed.feature, columns)
            made.update(zip(parsed.tensors, tensors, strict=True))
        wanted = [
            canonical(component.name)
            for component in tf.nest.flatten(self._structure, expand_composites=True)
        ]
        behind = [name for name in wanted if name not in made]
        graph_def = self._behind_parse_op(behind)
        read = {canonical(reference) for node in graph_def.node for reference in node.input}
        imported = tf.import_graph_def(
            graph_def,
            input_map={name: tensor for name, tensor in made.items() if name in read},
            return_elements=[name if ":" in name else f"{name}:0" for name in behind],
            name="features",
        )
        made.update(zip(behind, imported, strict=True))
        return tf.nest.pack_sequence_as(
            self._structure, [made[name] for name in wanted], expand_composites=True
        )

    def _behind_parse_op(self, tensors: list[str]) -> Any:
        """The nodes that combine several parsed features into one sparse or ragged feature."""
        nodes = {node.name: node for node in self._graph_def.node}
        needed = ancestors(nodes, map(producer, tensors), stop=[self._parse_node])
        graph_def = tf.compat.v1.GraphDef(versions=self._graph_def.versions)
        graph_def.node.extend(nodes[name] for name in nodes if name in needed)
        return graph_def
