"""Adds the stages of a late signature to a MetaGraph: chooses the domains, proves the result."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from colcast.export.convert._features import Feature, Side
from colcast.export.cut._cut import Cut, DomainsWithoutStage, Model
from colcast.export.cut._observed import Observed
from colcast.export.cut._stage import row_bytes
from colcast.export.cut._stages_proof import StagesProof
from colcast.export.cut._stages_report import StagesReport
from colcast.export.graph._colours import ITEM, PAIR, USER
from colcast.export.graph._errors import ExportError
from colcast.export.graph._probe import Probe
from colcast.export.graph._signature import Signature, read_late_signature
from colcast.export.rows._independence import Independence
from colcast.export.trials._requests import DrawRows, Requests

# Users share a run only if a user's states have at most this many bytes. A separate run costs about
# 100 microseconds per user. Copying 8 KiB for each of 50 candidates takes as long, at 4 GB/s, and
# the ops that follow then read one row per candidate instead of a single row.
_MOST_GATHERED = 8192


def add_stages(
    meta_graph: Any,
    observed: Observed,
    *,
    features: Sequence[Feature],
    rows: DrawRows,
    late_signature: str = "columnar_late",
) -> StagesReport:
    """Adds `columnar_<domain>` for each domain, and `columnar_pair`, if the proof succeeds.

    Args:
        meta_graph: MetaGraphDef with the columnar signature and the late one made from it; changed
            in place if the stages are written. The session's graph gets the new nodes too.
        observed: the observed columnar signature.
        features: the signature's features with their domains.
        rows: draws rows for the proof, like `rows` of `observe`.
        late_signature: the late signature; the stages must give the same results.

    Returns:
        A report on the stages that were written, or the reason why none were.
    """
    try:
        late = read_late_signature(meta_graph, late_signature, observed.name)
        model = Model(meta_graph, observed, late, late_signature, _by_domain(late, features))
        return _Adding(model, rows).add()
    except ExportError as error:
        return StagesReport(written=False, reason=str(error))


class _Adding:
    """Adds the stages of one late signature."""

    def __init__(self, model: Model, rows: DrawRows) -> None:
        self._model, self._tolerance = model, model.observed.tolerance
        self._late = Probe(model.observed.session, model.late.inputs, model.late.outputs)
        self._requests = Requests(rows, self._late)
        self._cuts = 0

    def add(self) -> StagesReport:
        """Cuts the graph; if domains turn out to have no stage, cuts again without them."""
        left: dict[str, str] = {}
        while True:
            domains = [d for d in self._model.features if d != PAIR and d not in left]
            try:
                return replace(self._add(domains), left_out=left)
            except DomainsWithoutStage as found:
                left |= found.why

    def _add(self, domains: Sequence[str]) -> StagesReport:
        cut = self._cut(domains)
        report = StagesReport(
            written=False,
            context_features=tuple(cut.candidates),
            states=cut.states,
            pair_ops=len(cut.boundary.pair),
            not_states=cut.refused | {n: why for n, why in cut.boundary.again.items() if why},
        )
        try:
            return self._write(cut, report)
        except DomainsWithoutStage:
            raise
        except ExportError as error:
            return replace(report, reason=str(error))

    def _write(self, cut: Cut, report: StagesReport) -> StagesReport:
        cut.write()
        independence = cut.independence()
        proof = cut.proof(self._late, self._requests, self._tolerance, independence)
        try:
            difference = proof.compare()
        except ExportError as error:
            why = f"they differ from {self._model.late_name}: {error}"
            if others := cut.domains[2:]:
                raise DomainsWithoutStage(dict.fromkeys(others, why)) from error
            raise ExportError(why) from error
        report = replace(
            report,
            written=True,
            domains=cut.domains,
            difference=difference,
            signatures=tuple(cut.names.values()),
            independence={cut.names[domain]: found for domain, found in independence.items()},
            **self._users_per_run(independence[PAIR], proof, report),
        )
        cut.publish()
        return report

    def _cut(self, domains: Sequence[str]) -> Cut:
        """Cuts the graph into stages and finds their states.

        Raises DomainsWithoutStage if domains cannot have a stage.
        """
        self._cuts += 1
        again = f"/again_{self._cuts}" if self._cuts > 1 else ""
        cut = Cut(self._model, domains, again)
        cut.find_states()
        return cut

    def _users_per_run(
        self, independence: Independence, proof: StagesProof, report: StagesReport
    ) -> dict[str, Any]:
        if not independence.rows:
            return {
                "users_per_run": "one",
                "why_one": f"rows may affect each other: {independence.why_not}",
            }
        try:
            proof.compare(several_users=True)
        except ExportError as error:
            return {"users_per_run": "one", "why_one": f"with several users: {error}"}
        gathered = row_bytes(report.user_states)
        if gathered > _MOST_GATHERED:
            why = f"gathering would copy {gathered:,} bytes per candidate, more than a run saves"
            return {"users_per_run": "one", "why_one": f"{why} ({_MOST_GATHERED:,})"}
        return {"users_per_run": "many"}


def _by_domain(late: Signature, features: Sequence[Feature]) -> dict[str, Sequence[Feature]]:
    """Groups features by domain, user and item first; PAIR has those of no domain."""
    if late.shared:
        raise ExportError(f"input {min(late.shared)!r} has no rows")
    domains = sorted({str(feature.side) for feature in features} - {*Side})
    of: dict[str, Sequence[Feature]] = {
        domain: [feature for feature in features if feature.side == side]
        for domain, side in [
            (USER, Side.USER),
            (ITEM, Side.ITEM),
            *((domain, domain) for domain in domains),
            (PAIR, Side.CANDIDATE),
        ]
    }
    if not of[USER]:
        raise ExportError("no feature is the user's")
    if not of[ITEM]:
        raise ExportError("all features belong to the user or another domain, none to the items")
    return of
