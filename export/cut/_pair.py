"""Writes the last stage: the ops that read the domains' states and score candidates."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

import numpy as np
import tensorflow as tf
from colcast.export.cut._findings import Finding
from colcast.export.cut._stage import Boundary
from colcast.export.graph._colours import ITEM, USER, Colours
from colcast.export.graph._emitter import Copy
from colcast.export.graph._nodes import FlatGraph, NodeDef, attribute, data_inputs, scope_name
from colcast.export.rows import Fact
from colcast.export.rows._facts import R
from colcast.export.rows._independence import rows_of

_INT32 = {"Tidx": tf.int32}


def state_key(domain: str, number: int) -> str:
    """The name of a state, as an output of its stage and an input of the last stage."""
    return f"{domain}_state/{number}"


def index_key(domain: str) -> str:
    """The input that says which row of a domain each candidate reads."""
    return f"row_to_{domain}"


def number_key(domain: str) -> str:
    """The input that numbers the rows of a domain's states within a request, 0 to R - 1."""
    return f"{domain}_state/row"


def rows_keys(domains: Iterable[str]) -> list[str]:
    """The inputs that index the domains' rows; the item domain needs none."""
    return [key(domain) for domain in domains if domain != ITEM for key in (index_key, number_key)]


def rows_of_pair(
    inputs: Mapping[str, str],
    domains: Collection[str],
    prefix: str,
    graph: tf.Graph,
    states: Mapping[str, Fact],
) -> dict[str, Fact]:
    """Facts about each input tensor of the last stage in a run with several users.

    Args:
        inputs: the input tensors by key.
        domains: the domains with a stage.
        prefix: the prefix of the stage's nodes.
        graph: the graph with the tensors.
        states: facts about the states in their stages, by key.
    """
    columns, found = dict(inputs), dict[str, Fact]()
    for domain in domains:
        own = {key: columns.pop(key) for key in inputs if key.startswith(f"{domain}_state/")}
        rows = R if domain == ITEM else (f"rows:{domain}",)
        found |= rows_of(own, graph, rows=rows, lists=False)
        for key, (role, name) in ((key, states[key].role) for key in own if key in states):
            if role == "counts":
                found[own[key]] = replace(found[own[key]], of=f"counts:?{name}")
        if domain == ITEM:
            continue
        index = Fact("ids", (R,), of=rows)
        found |= {
            columns.pop(index_key(domain)): index,
            f"{prefix}/rows/of_{domain}/index:0": index,
        }
    # The number of rows that the users' states have after gathering; 1 for a single user.
    found[f"{prefix}/rows/of_user:0"] = Fact("size", ((),), sizes=(R,))
    return found | rows_of(columns, graph)


class PairGraph(Copy):
    """The last stage.

    A domain's states are gathered by `row_to_<domain>`, one row per candidate. A single user's
    states keep one row, which the ops repeat as in the late signature.
    """

    def __init__(
        self,
        graph: FlatGraph,
        colours: Colours,
        session: tf.compat.v1.Session,
        prefix: str,
        boundary: Boundary,
        finding: Callable[[str], Finding],
        candidates: Mapping[str, str],
        outputs: Mapping[str, str],
        rows: str,
    ) -> None:
        """Writes the whole stage.

        Args:
            graph: the late graph's nodes.
            colours: the nodes' colours.
            session: a session with the graph.
            prefix: the prefix of new names.
            boundary: where the stages end.
            finding: what is known about a domain's tensor.
            candidates: the columns without a stage.
            outputs: the late graph's outputs.
            rows: the late graph's tensor with the number of candidates.
        """
        super().__init__(colours, session, prefix)
        self._boundary = boundary
        self._finding = finding
        for domain, states in boundary.states.items():
            for number, state in enumerate(states):
                shape = (None, *(finding(state).shape or ())[1:])
                self._new[state] = self._place(
                    state_key(domain, number), self.dtype(state), tf.TensorShape(shape)
                )
        for column, tensor in candidates.items():
            known = session.graph.get_tensor_by_name(tensor)
            self._new[tensor] = self._place(column, known.dtype, known.shape)
        self._rows = {ITEM: self._count("candidates", boundary.states[ITEM][0])}
        for domain in boundary.states:
            if domain != ITEM:
                self._rows[domain] = self._gather_rows(domain)
        name = self.emit.name("rows", "per_user_row")
        counts = [self._rows[ITEM], self._rows[USER]]
        self._new[rows] = self.emit.add("FloorDiv", name, counts, T=tf.int32)
        for name in boundary.pair:
            if f"{name}:0" in self._new:
                continue
            if name in boundary.shapes:
                self._new[f"{name}:0"] = self._known_shape(graph.nodes[name])
            else:
                self._write(graph.nodes[name], boundary.pair)
        self.write_outputs(outputs, boundary.outputs_wait_for)

    def _place(self, key: str, dtype: tf.DType, shape: tf.TensorShape) -> str:
        """Writes a placeholder for an input; returns its tensor."""
        name = self.emit.name("inputs", scope_name(key))
        self.inputs[key] = self.emit.add("Placeholder", name, [], dtype=dtype, shape=shape)
        return self.inputs[key]

    def _gather_rows(self, domain: str) -> str:
        """Gathers a domain's states. Returns the number of gathered rows, int32 [1]."""
        states = self._boundary.states[domain]
        row, rows = self.emit.name("rows", f"of_{domain}"), self._rows[ITEM]
        count = self._count(f"{domain}s", states[0])
        one = self.emit.constant(np.ones(1, np.int32))
        is_one = self.emit.add("Equal", f"{row}/is_one", [count, one], T=tf.int32)
        index = self._checked_index(domain, is_one)
        if domain == USER:
            rows = self.emit.add("SelectV2", row, [is_one, one, rows], T=tf.int32)
            index = self._first_if(is_one, index, f"{row}/first")
        name = f"{row}/index"
        index = self.emit.add("BroadcastTo", name, [index, rows], T=tf.int64, **_INT32)
        for number, state in enumerate(states):
            name = self.emit.name(f"{domain}s", f"{number}/{_no_row(domain)}")
            self._new[state] = self.emit.gather(
                name, self._new[state], index, self.dtype(state), tf.int64
            )
        return rows

    def _first_if(self, is_one: str, index: str, name: str) -> str:
        """The first entry of the index if there is a single user, else the whole index."""
        one, most = (
            self.emit.constant(np.full(1, size, np.int32)) for size in (1, np.iinfo(np.int32).max)
        )
        end = self.emit.add("SelectV2", f"{name}/end", [is_one, one, most], T=tf.int32)
        return self.emit.section(name, index, 0, end, tf.int64)

    def _checked_index(self, domain: str, is_one: str) -> str:
        """Writes `row_to_<domain>` with a check that all rows belong to a single request.

        When a batching session joins requests, the row numbers 0 to R - 1 repeat, and an op refuses
        them. It outputs zeros, which are added to the index so that the check is not optimized
        away. If the domain has one row, every entry of the index is looked up in the zeros, because
        other ops read only the first entry.
        """
        numbers, given = (
            self._place(key, tf.int64, tf.TensorShape([None]))
            for key in (number_key(domain), index_key(domain))
        )
        zero = self.emit.constant(np.array(0, np.int64))
        # TensorFlow's error message contains the op's name, so the name describes the error.
        last = f"{_many(domain)}_minus_1"
        name = self.emit.name("rows", f"{domain}_state_row_must_be_0_to_{last}_of_one_request")
        size = self.emit.shape(f"{name}/size", numbers, tf.int64, tf.int64)
        kinds = {"T": tf.int64, "Tindices": tf.int64, "validate_indices": True}
        zeros = self.emit.add("SparseToDense", name, [numbers, size, zero, zero], **kinds)
        name = self.emit.name("rows", _no_row(domain))
        of_one = [is_one, given, zero]
        looked_up = self.emit.add("SelectV2", f"{name}/of_one", of_one, T=tf.int64)
        added = self.emit.gather(name, zeros, looked_up, tf.int64, tf.int64)
        name = self.emit.name("rows", index_key(domain))
        return self.emit.add("AddV2", name, [given, added], T=tf.int64)

    def _count(self, name: str, state: str) -> str:
        """The number of rows of a state input, [1] int32."""
        name = self.emit.name("rows", name)
        shape = self.emit.shape(f"{name}/shape", self._new[state], self.dtype(state))
        return self.emit.section(name, shape, 0, 1)

    def _known_shape(self, node: NodeDef) -> str:
        (tensor,) = data_inputs(node)
        domain = self._colours[tensor]
        inner = np.array((self._finding(tensor).shape or ())[1:], np.int32)
        name = self.emit.name("rows", node.name)
        sizes = [self._rows[domain], *([self.emit.constant(inner)] if inner.size else [])]
        shape = self.emit.concat(name, sizes, 0, tf.int32)
        dtype = tf.as_dtype(attribute(node, "out_type").type or tf.int32.as_datatype_enum)
        if dtype is tf.int32:
            return shape
        return self.emit.add("Cast", f"{name}/cast", [shape], SrcT=tf.int32, DstT=dtype)


def _many(domain: str) -> str:
    """The letter for a domain's number of rows in error messages."""
    return "U" if domain == USER else "R"


def _no_row(domain: str) -> str:
    """The name of the op that fails if an index refers to a row that does not exist."""
    return f"{index_key(domain)}_must_be_0_to_{_many(domain)}_minus_1"
