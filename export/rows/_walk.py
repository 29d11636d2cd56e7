"""Applies the rules to a graph, op by op."""

from collections.abc import Mapping, Sequence
from typing import Any

from colcast.export.graph._nodes import FlatGraph, NodeDef, data_inputs
from colcast.export.graph._ops import computed_from_weights
from colcast.export.rows._control import MERGES, Ways, chosen
from colcast.export.rows._facts import Fact, Kind, fixed, mixed
from colcast.export.rows._free import known_sizes
from colcast.export.rows._nodes import Nodes, sizes_of
from colcast.export.rows._trials import Evaluate, Trials


class Walk:
    """Facts about every tensor of a graph.

    Attributes:
        facts: by tensor, in the form "node:port".
    """

    def __init__(
        self,
        graph: FlatGraph,
        given: Mapping[str, Fact],
        copies: Mapping[str, Fact],
        session_graph: Any,
        evaluate: Evaluate,
    ) -> None:
        """Walks the graph.

        Args:
            graph: the nodes.
            given: facts about its inputs, by tensor.
            copies: facts about tensors that repeat a one-row column, used if the tensor turns out
                to have one copy per row.
            session_graph: the tf.Graph with the nodes.
            evaluate: computes tensors from values of others; returns None on failure.
        """
        self.facts: dict[str, Fact] = dict(given)
        self._copies = copies
        self._session_graph = session_graph
        self._evaluate = evaluate
        # Tensors that depend on neither inputs nor weights, so retraining does not change them.
        self._free: set[str] = set()
        from_weights = computed_from_weights(graph)
        self._trials = Trials(graph, session_graph, given, evaluate)
        self._nodes = Nodes(graph, self._trials.compute)
        self._ways = Ways()
        for name, node in graph.nodes.items():
            if f"{name}:0" in given:
                continue
            operation = session_graph.get_operation_by_name(name)
            sources = data_inputs(node)
            conditions = self._ways.conditions(node)
            known = node.op != "Placeholder" and name not in from_weights
            if known and self._free.issuperset({*sources, *conditions}):
                self._free.update(tensor.name for tensor in operation.outputs)
            self._visit(node, sources, operation)
            if conditions:
                merge = [tensor.name for tensor in operation.outputs]
                made = [self.facts[tensor] for tensor in merge]
                read = [self.facts[condition] for condition in conditions]
                self.facts.update(zip(merge, chosen(node.name, made, read), strict=True))

    def _visit(self, node: NodeDef, sources: Sequence[str], operation: Any) -> None:
        if not operation.outputs:
            return
        inputs = [
            self.facts.get(source, mixed(f"{source}: no fact is known")) for source in sources
        ]
        if node.op in MERGES:  # a loop's back edge has no fact yet
            inputs = [self.facts[source] for source in sources if source in self.facts]
            if len(inputs) < len(sources):
                inputs.append(mixed(f"{node.name} ({node.op}): a TensorFlow 1 loop"))

        def value_of(index: int) -> Any:
            fact = inputs[index]
            if fact.kind is Kind.SIZES:
                return known_sizes(fact)
            if fact.value is not None or sources[index] not in self._free:
                return fact.value
            return self._evaluate(sources[index], {})

        if any(fact.kind is Kind.ROWS for fact in inputs):
            inputs = [
                fixed(fact.axes, value_of(index)) if self._is_one(sources[index], fact) else fact
                for index, fact in enumerate(inputs)
            ]
        shapes = [sizes_of(tensor.shape) for tensor in operation.outputs]
        made = self._nodes.result(
            node, inputs, value_of, shapes, lambda n: self._trials.of_one_row(sources[n], inputs[n])
        )
        if operation.outputs[0].name in self._free:
            outputs = [tensor.name for tensor in operation.outputs]
            made = list(map(self._trials.measured, outputs, made))
        for tensor, fact in zip(operation.outputs, made, strict=True):
            copy = self._copies.get(tensor.name, fact)
            of_rows = fact.axes and copy.axes and fact.axes[0] == copy.axes[0]
            self.facts[tensor.name] = copy if of_rows else fact

    def _is_one(self, tensor: str, fact: Fact) -> bool:
        """Whether a tensor is a single entry that can be computed before a run."""
        if tensor not in self._free or fact.kind is not Kind.FIXED or fact.uniform is not None:
            return False
        dtype = self._session_graph.get_tensor_by_name(tensor).dtype.base_dtype
        return bool(fact.axes is not None and not any(fact.axes) and dtype.is_numpy_compatible)
