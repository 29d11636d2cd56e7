"""A converted model in a session: parity of scores, late expansion, warm-up requests."""

import functools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import tensorflow as tf
from colcast.export.convert._features import Side
from colcast.export.convert._signature import Conversion
from colcast.export.cut._add_late import add_late_signature
from colcast.export.cut._add_stages import add_stages
from colcast.export.cut._late_report import LateReport
from colcast.export.cut._observed import Observed, observe, walk
from colcast.export.cut._stages_report import StagesReport, count_reuse
from colcast.export.graph._errors import ExportError
from colcast.export.graph._nodes import FlatGraph
from colcast.export.graph._ops import is_compiled
from colcast.export.graph._probe import Probe
from colcast.export.graph._signature import Signature, read_late_signature, read_signature
from colcast.export.report._cost import SIZES, Compiled, Requests, Way
from colcast.export.rows import Fact
from colcast.export.rows._independence import Independence, candidates, judge
from colcast.export.trials._both_signatures import BothSignatures
from colcast.export.trials._generate import RowSource
from colcast.export.trials._model_rows import ModelRows
from colcast.export.trials._parity import AFFECT, Parity, prove_scores, scored_alike
from colcast.export.trials._rows import Columns, Rows
from colcast.export.trials._traffic import Recorded
from colcast.export.warmup import warmup_request

_LEAST_GAIN_OF_EXACT = 0.03  # a smaller gain may be measurement error
_BATCHES = (2, 9, 30)  # numbers of rows to score together and separately
# The largest relative difference between two runs of the same rows: sums are added in other orders.
_LARGEST_DIFFERENCE = 1e-5
_COST_ROWS = 100  # distinct rows in a measured request


class LoadedModel:
    """A converted signature in a session, with rows that its model accepts."""

    def __init__(
        self,
        probe: BothSignatures,
        session: Any,
        meta_graph: Any,
        conversion: Conversion,
        source: RowSource,
        traffic: Recorded | None,
    ) -> None:
        """Determines which generated and recorded rows the model accepts.

        Args:
          probe: runs the converted signature and its source.
          session: a session with the converted signature; new signatures are added to its graph.
          meta_graph: the MetaGraphDef with the conversion's signatures.
          conversion: the converted signature to try.
          source: draws generated rows; it is restricted until the model accepts them.
          traffic: recorded rows, if there are any.
        """
        self._session = session
        self._meta_graph = meta_graph
        self._conversion = conversion
        self._probe = probe
        self._traffic = traffic
        self._observed: Observed | None = None
        self._rows = ModelRows(self._probe, conversion, source, traffic)
        self._accepted = functools.cache(self._rows.accepted)

    def parity(self) -> Parity:
        """Compares scores on generated rows, then on recorded ones; ExportError if they differ."""
        if self._conversion.source_input is None:
            self._probe.check_rows_of_outputs(self._rows.accepted(rows) for rows in (1, 2, 5))
        parity = replace(
            self._prove_scores(),
            recorded_rows=sum(map(len, self._rows.recorded)),
            refused_rows=self._rows.refused,
            refusal=self._rows.refusal,
            not_finite=self._rows.not_finite(),
        )
        refuses_alike = self._conversion.context is None and not self._conversion.refusing
        self._probe.by_columns = refuses_alike and parity.rows > 0
        return parity

    def _prove_scores(self) -> Parity:
        try:
            return prove_scores(self._probe, self._rows.batches())
        except ExportError as error:
            if self._conversion.context is None:
                raise
            raise ExportError(
                f"{error}; columns stand for lists of one example each, so a model whose scores"
                " depend on the other examples of a list cannot be converted"
            ) from error

    def observe(self, tolerance: float) -> Observed:
        """Runs the columnar signature to find where its user part can end."""
        self._observed = observe(
            self._meta_graph,
            self._session,
            features=self._conversion.features,
            rows=self._rows.turns(),
            bold_rows=self._rows.turns(bold=True) if self._rows.redrawn else None,
            columnar_signature=self._conversion.name,
            tolerance=tolerance,
            facts=self._facts,
        )
        return self._observed

    def add_late(self, name: str, observed: Observed) -> LateReport:
        """Adds the late signature to the MetaGraphDef."""
        return add_late_signature(self._meta_graph, observed, late_signature=name)

    def add_exact(self, name: str, observed: Observed, *, always: bool) -> LateReport | str:
        """Adds the exact signature to the MetaGraphDef, or returns why it would gain nothing.

        Args:
          name: the signature's name.
          observed: the observed columnar signature.
          always: whether to add it even if it was measured to be no faster.
        """
        least_gain = -math.inf if always else _LEAST_GAIN_OF_EXACT
        try:
            return add_late_signature(
                self._meta_graph, observed.exactly(), late_signature=name, least_gain=least_gain
            )
        except ExportError as error:
            return str(error)

    def add_stages(self, late: str, observed: Observed) -> StagesReport:
        """Adds the stages of a late signature to the MetaGraphDef, or reports why it cannot."""
        if self._conversion.impurity:
            return StagesReport(written=False, reason=self._conversion.impurity.why)
        report = add_stages(
            self._meta_graph,
            observed,
            features=self._conversion.features,
            rows=self._rows.turns(),
            late_signature=late,
        )
        if not self._traffic:
            return report
        users, items = (self._names(side) for side in (Side.USER, Side.ITEM))
        return replace(report, reuse=count_reuse(self._traffic.by_request(), users, items))

    def _names(self, side: str) -> list[str]:
        """The names of a domain's features."""
        return [feature.name for feature in self._conversion.features if feature.side == side]

    @functools.cached_property
    def _columnar(self) -> Signature:
        return read_signature(self._meta_graph, self._conversion.name, ())

    @functools.cached_property
    def _facts(self) -> Mapping[str, Fact]:
        """The independence rule's facts about the columnar signature, walked once."""
        graph = FlatGraph(self._meta_graph, self._columnar.outputs.values())
        return walk(self._session, graph, self._columnar)

    @functools.cached_property
    def independence(self) -> Independence:
        """Whether the candidates of the columnar signature may be joined, split and cached."""
        if self._conversion.impurity:
            return Independence(False, self._conversion.impurity.why)
        try:
            found = judge(self._facts, self._columnar.outputs)
        except ExportError as error:
            return Independence(False, str(error))
        if found.rows:
            alike = self._scored_alike(self._columnar, _LARGEST_DIFFERENCE, found.own_length)
            return found.and_run(alike)
        mixing = re.search(r"\((\w+) ([^\s()]+)\)$", found.why_not)
        if not mixing or found.why_not.startswith("no rule"):
            return found
        lists = [f.name for f in self._conversion.features if len(f.columns[0].shape) > 1]
        if self._scored_alike(self._columnar, _LARGEST_DIFFERENCE, lists, _BATCHES[1:2]) is False:
            return replace(found, why_not=f"{AFFECT} ({mixing[1]} {_in_the_model(mixing[2])})")
        return found

    def independence_of(self, name: str, tolerance: float) -> Independence:
        """The same for a late signature, which was proved to give the columnar one's scores.

        If rows of the columnar signature depend on each other, perhaps only the user's do; then the
        rule is applied to the late signature, in which the user has one row.
        """
        signature = read_late_signature(self._meta_graph, name, self._conversion.name)
        own = self.independence
        if own.rows:
            lists = tuple(name for name in own.own_length if name not in signature.user)
            return replace(own, own_length=lists)
        if self._conversion.impurity:
            return own
        user = self._observed.user_facts(name) if self._observed else {}
        found = candidates(self._meta_graph, self._session, signature, user)
        if not found.rows:
            return found
        return found.and_run(self._scored_alike(signature, tolerance, found.own_length))

    def _scored_alike(
        self,
        signature: Signature,
        tolerance: float,
        own_length: Sequence[str],
        batches: Sequence[int] = _BATCHES,
    ) -> bool | None:
        """Whether candidates score the same together and apart; None if the model refuses rows."""
        run = Probe(self._session, signature.inputs, signature.outputs)
        of_request = [f.name for f in self._conversion.features if f.name in signature.once]

        def score(rows: Rows) -> Mapping[str, Any]:
            return run(rows.once() if signature.user else rows.columns())

        alike: bool | None = None
        for count in batches:
            try:
                rows = self._probe.of_a_request(self._accepted(count)).of_one(of_request)
            except ExportError:  # the model accepts no rows
                break
            alike = scored_alike(score, rows, tolerance, own_length)
            if not alike:
                break
        return alike

    def requests(self, signature: str) -> Requests:
        """Single-user requests to the source signature and to the signatures made from it.

        Returns:
          For each N, the requests that score N candidates; empty if the model refuses rows of one
          user.
        """
        try:
            rows = self._rows.everyday(_COST_ROWS)
            return {
                size: self._ways(rows, [n % len(rows) for n in range(size)], signature)
                for size in SIZES
            }
        except (ExportError, tf.errors.OpError):
            return {}

    def compiled(self, warmed: Sequence[int]) -> Compiled | None:
        """What XLA compiles in the columnar signature; None if nothing."""
        name = self._conversion.name
        outputs = self._meta_graph.signature_def[name].outputs.values()
        graph = FlatGraph(self._meta_graph, [info.name for info in outputs])
        ops = sum(is_compiled(node.op) for node in graph.nodes.values())
        return Compiled(ops, tuple(warmed)) if ops else None

    def _ways(self, distinct: Rows, which: list[int], signature: str) -> list[Way]:
        """Requests that score the same rows: one to the source, one to another signature."""
        of_request = self._probe.of_a_request(distinct.take(which))
        columns, once = of_request.columns(), of_request.once()
        source, source_input = self._conversion.source, self._conversion.source_input
        context, given = self._conversion.context, columns
        if source_input and context is None:
            given = {source_input: distinct.examples[which]}
        elif source_input:
            given = {source_input: of_request.serialized(context)}
        graph_gets = columns if signature == self._conversion.name else once
        return [self._way(source, given, given), self._way(signature, graph_gets, once)]

    def _way(self, signature: str, feeds: Mapping[str, Any], sent: Mapping[str, Any]) -> Way:
        definition = self._meta_graph.signature_def[signature]
        sent = {name: sent[name] for name in definition.inputs}
        request = warmup_request(signature, sent, definition).predict_log.request
        return Way(signature, definition, feeds, request.ByteSize())

    def warmup(self, row_counts: Sequence[int]) -> list[Any]:
        """One warm-up request per row count, for any server: with the user on every row."""
        columns = [self._rows.accepted(count).columns() for count in row_counts]
        return [self._warmup_request(self._conversion.name, each) for each in columns]

    def warmup_once(self, row_counts: Sequence[int], signatures: Sequence[str]) -> list[Any]:
        """One warm-up request per row count and signature, with the user as one row."""
        columns = [self._rows.accepted(count).once() for count in row_counts]
        return [self._warmup_request(name, each) for each in columns for name in signatures]

    def _warmup_request(self, name: str, columns: Columns) -> Any:
        return warmup_request(name, columns, self._meta_graph.signature_def[name])


def _in_the_model(node: str) -> str:
    """The name of an op without what the exporter and function calls put before it."""
    return re.sub(r"\w*PartitionedCall\w*/", "", node.partition("/")[2] or node)
