"""One attempt to cut a columnar signature: finds states, writes stages, checks independence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import tensorflow as tf
from colcast.export.convert._features import Feature
from colcast.export.cut._findings import Finding, RowKind
from colcast.export.cut._observed import Observed
from colcast.export.cut._pair import PairGraph, rows_keys, rows_of_pair, state_key
from colcast.export.cut._stage import Boundary, StageGraph, find_boundary, why_no_gain
from colcast.export.cut._stages_proof import StagesProof
from colcast.export.cut._stages_report import State
from colcast.export.cut._write_late import write_late
from colcast.export.graph._colours import FREE, ITEM, PAIR, USER, Colours, colour
from colcast.export.graph._emitter import Copy, add_nodes, import_nodes
from colcast.export.graph._errors import ExportError
from colcast.export.graph._nodes import FlatGraph, NodeDef
from colcast.export.graph._probe import Probe, fetchable
from colcast.export.graph._signature import Signature
from colcast.export.rows import Fact, Walk, verdict
from colcast.export.rows._independence import Independence, judge, rows_of
from colcast.export.trials._requests import Requests


@dataclass(frozen=True)
class Model:
    """The model to cut.

    Attributes:
        meta_graph: MetaGraphDef with the columnar signature and the late one made from it.
        observed: the observed columnar signature.
        late: the late signature.
        late_name: the late signature's name.
        features: features by domain; under PAIR, those that belong to no domain.
    """

    meta_graph: Any
    observed: Observed
    late: Signature
    late_name: str
    features: Mapping[str, Sequence[Feature]]


class DomainsWithoutStage(ExportError):
    """Some domains cannot have a stage; their columns must go to the last stage.

    Attributes:
        why: reasons by domain.
    """

    def __init__(self, why: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{domain}: {reason}" for domain, reason in why.items()))
        self.why = why


class Cut:
    """A columnar signature cut into the stages of some domains and the last stage.

    It first writes a late graph for any number of users, then cuts that graph. The new nodes exist
    only in the session's graph until `publish` adds them to the MetaGraphDef.

    Attributes:
        domains: the domains with a stage, user and item first.
        names: signature names by domain; under PAIR, the last stage's.
        candidates: columns that the last stage reads, with their placeholders.
        boundary: the states and the last stage's nodes.
        states: the states by domain.
        refused: nodes whose products could have been split but were not, with the reason.
    """

    def __init__(self, model: Model, domains: Sequence[str], again: str) -> None:
        """Writes the late graph.

        Args:
            model: the model to cut.
            domains: the domains that get a stage.
            again: a suffix for the prefix of new nodes; "" for the first cut in the session's
                graph.
        """
        observed = model.observed
        self._model, self._session, self.domains = model, observed.session, tuple(domains)
        self.names = {domain: f"{observed.name}_{domain}" for domain in (*domains, PAIR)}
        self._prefixes = {domain: f"{name}{again}" for domain, name in self.names.items()}
        colours = self._colour(observed.graph, observed.signature, observed.held, waiting=USER)
        self._late, products = write_late(observed, f"{self._prefixes[PAIR]}/late", domains=colours)
        self.refused = products.refused
        whole = self._late.finish(observed.signature)
        self._late_nodes = self._late.added()
        import_nodes(self._session.graph, self._late_nodes)
        self._outputs = whole.outputs
        own = {d: [c.name for f in model.features[d] for c in f.columns] for d in domains}
        self._columns = {d: {name: whole.inputs[name] for name in own[d]} for d in domains}
        staged = {name for of_domain in own.values() for name in of_domain}
        self.candidates = {name: t for name, t in whole.items.items() if name not in staged}
        nodes = [*model.meta_graph.graph_def.node, *self._late_nodes.node]
        tensors = [*whole.outputs.values(), *whole.inputs.values()]
        self._graph = observed.graph.with_nodes(nodes, tensors)
        self._colours = self._colour(self._graph, whole)
        given = rows_of({**whole.user, **whole.items}, self._session.graph)
        self._facts = Walk(self._graph, self._session, given).facts
        self._fetchable = fetchable(self._session.graph, self._graph.nodes)
        self._written: dict[str, Copy] = {}
        self.boundary = Boundary()
        self.states: dict[str, tuple[State, ...]] = {}

    def _colour(
        self,
        graph: FlatGraph,
        signature: Signature,
        held: Mapping[str, str] = MappingProxyType({}),
        waiting: str = PAIR,
    ) -> Colours:
        of = self._model.features
        names = {d: [c.name for f in of[d] for c in f.columns] for d in self.domains}
        own = {domain: [signature.inputs[n] for n in each] for domain, each in names.items()}
        staged = {tensor for tensors in own.values() for tensor in tensors}
        own[PAIR] = [tensor for tensor in signature.items.values() if tensor not in staged]
        return colour(graph, own, held, waiting=waiting)

    def find_states(self) -> None:
        """Finds the stages' states and the last stage's nodes.

        Raises:
            DomainsWithoutStage: other domains' stages than the user's and the items' gain nothing.
        """
        outputs = list(self._outputs.values())
        self.boundary = find_boundary(
            self._graph, self._colours, self.domains, self._finding, outputs, self._late.rows
        )
        self.states = {
            domain: tuple(self._state(tensor) for tensor in tensors)
            for domain, tensors in self.boundary.states.items()
        }
        _check({d: self._why_no_gain(d) for d in self.domains if d not in (USER, ITEM)})

    def write(self) -> None:
        """Writes the stages' outputs and the last stage.

        Raises:
            ExportError: the user or the item domain has no state.
        """
        why = "no output depends on the {}'s features"
        _check({d: "" if self.states[d] else why.format(d) for d in self.domains})
        for domain, columns in self._columns.items():
            prefix = self._prefixes[domain]
            stage = StageGraph(self._graph, self._colours, self._session, prefix, domain, columns)
            states, waited_for = self.boundary.states[domain], self.boundary.waited_for[domain]
            keys = [state_key(domain, number) for number in range(len(states))]
            stage.write_outputs(dict(zip(keys, states, strict=True)), waited_for)
            self._written[domain] = stage
        self._written[PAIR] = PairGraph(
            self._graph,
            self._colours,
            self._session,
            self._prefixes[PAIR],
            self.boundary,
            self._finding,
            self.candidates,
            self._outputs,
            self._late.rows,
        )
        for written in self._written.values():
            import_nodes(self._session.graph, written.added())

    def independence(self) -> dict[str, Independence]:
        """Returns what the independence rule says about each stage, and applies it to the last."""
        found, facts = {}, dict[str, Fact]()
        for domain, tensors in self.boundary.states.items():
            states = dict(zip(self._written[domain].outputs, tensors, strict=True))
            found[domain] = judge(self._facts, states)
            facts |= {key: self._facts[tensor] for key, tensor in states.items()}
        pair, known = self._written[PAIR], self._session.graph
        given = rows_of_pair(pair.inputs, self.domains, self._prefixes[PAIR], known, facts)
        tensors = [*pair.outputs.values(), *pair.inputs.values()]
        graph = self._graph.with_nodes(pair.added().node, tensors)
        found[PAIR] = judge(Walk(graph, self._session, given).facts, pair.outputs)
        return found

    def proof(
        self,
        late: Probe,
        requests: Requests,
        tolerance: float,
        independence: Mapping[str, Independence],
    ) -> StagesProof:
        """Returns a comparison of the written stages with the late signature."""
        probes = {
            domain: Probe(self._session, stage.inputs, stage.outputs)
            for domain, stage in self._written.items()
        }
        pair = probes.pop(PAIR)
        features = {domain: self._model.features[domain] for domain in self.domains}
        every = [feature for own in self._model.features.values() for feature in own]
        if candidates := [f for f in every if f.name in self.candidates]:
            features[PAIR] = candidates
        own = {domain: found.own_length for domain, found in independence.items()}
        return StagesProof(late, probes, pair, features, requests, tolerance, own)

    def publish(self) -> None:
        """Adds the nodes and signatures to the MetaGraphDef."""
        meta_graph = self._model.meta_graph
        late = meta_graph.signature_def[self._model.late_name]
        for nodes in (self._shared(), *(stage.added().node for stage in self._written.values())):
            add_nodes(meta_graph, nodes)
        for domain, stage in self._written.items():
            signature = meta_graph.signature_def[self.names[domain]]
            signature.method_name = late.method_name
            for key, tensor in stage.inputs.items():
                self._tensor_info(signature.inputs[key], tensor)
                if key in late.defaults:
                    signature.defaults[key].CopyFrom(late.defaults[key])
            for number, (key, tensor) in enumerate(stage.outputs.items()):
                if domain == PAIR:
                    signature.outputs[key].CopyFrom(late.outputs[key])
                    signature.outputs[key].name = tensor
                else:
                    shape = (None, *self.states[domain][number].shape[1:])
                    self._tensor_info(signature.outputs[key], tensor, shape)
        for key in rows_keys(self.domains):
            pair = meta_graph.signature_def[self.names[PAIR]]
            pair.defaults[key].CopyFrom(tf.make_tensor_proto([0], tf.int64))

    def _shared(self) -> list[NodeDef]:
        """The new nodes that read no column."""
        return [n for n in self._late_nodes.node if self._colours.of[n.name] == FREE]

    def _finding(self, tensor: str) -> Finding:
        """Whether a domain's tensor can be a state (ROW), and the shape of one row."""
        if tensor not in self._fetchable:
            return Finding(RowKind.OTHER, reason="cannot be fetched")
        fact = self._facts[tensor]
        rows, found = verdict(fact)
        if not rows:
            same = "the same in every row" if fact.kind == "fixed" else str(found)
            return Finding(RowKind.OTHER, reason=same)
        shape = self._session.graph.get_tensor_by_name(tensor).shape
        inner = [None] * (len(fact.axes) - 1) if shape.rank is None else shape[1:]
        return Finding(RowKind.ROW, (1, *inner))

    def _state(self, tensor: str) -> State:
        dtype = self._session.graph.get_tensor_by_name(tensor).dtype.base_dtype
        return State(tensor, dtype.name, self._finding(tensor).shape or ())

    def _why_no_gain(self, domain: str) -> str:
        find = self._session.graph.get_tensor_by_name
        columns = [find(tensor) for tensor in self._columns[domain].values()]
        return why_no_gain(self._graph, self._colours, self.states[domain], columns)

    def _tensor_info(
        self, info: Any, tensor: str, shape: tuple[int | None, ...] | None = None
    ) -> None:
        known = self._session.graph.get_tensor_by_name(tensor)
        info.name = tensor
        info.dtype = known.dtype.base_dtype.as_datatype_enum
        declared = known.shape if shape is None else tf.TensorShape(shape)
        info.tensor_shape.CopyFrom(declared.as_proto())


def _check(why: Mapping[str, str]) -> None:
    """Raises an error if a domain has a reason other than "".

    Raises:
        DomainsWithoutStage: domains other than user and item have a reason.
        ExportError: only user or item has a reason.
    """
    refused = {domain: reason for domain, reason in why.items() if reason}
    if others := {d: reason for d, reason in refused.items() if d not in (USER, ITEM)}:
        raise DomainsWithoutStage(others)
    for reason in refused.values():
        raise ExportError(reason)
