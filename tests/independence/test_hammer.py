"""No answer depends on other requests, and the export's record agrees with the registry."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from colcast.server import ServerProcess
from tensorflow_serving.apis import predict_pb2

from ..models import Expected
from ..server.metrics_page import Metrics
from ..waiting import wait_until
from .cases import Case, cases_of, with_wide_list
from .conftest import ANSWERS, EACH, Models
from .exported import Exported
from .hammer import METHOD, Tally, busy, hammer, serve

pytestmark = pytest.mark.timeout(3600 if ANSWERS else 900)


def test_every_answer_is_the_original_models(
    group: Models, cases: Callable[[str], list[Case]], server: ServerProcess, variant: str
) -> None:
    """Checks all models before it fails, so one failure does not hide others."""
    found = {name: hammer(server, name, cases(name), EACH) for name in group}
    wrong = [
        f"{name}, {kind}: {said}"
        for name, tallies in found.items()
        for kind, tally in tallies.items()
        for said in _complaints(group[name].model.expected, variant, kind, tally)
    ]
    assert not wrong, "\n".join(["", *wrong])
    for name, exported in group.items():
        if exported.model.expected is Expected.INDEPENDENT:
            _check_gain(server, name, cases(name), variant)
        elif exported.model.expected is Expected.INTERACTING:
            assert _sum(server, "joined_requests", name) == 0, name
            assert _sum(server, "divided_requests", name) == 0, name


def test_a_request_that_asks_for_a_wide_list_leaves_no_memory(
    exported: Callable[[str], Exported], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Buffers for the ids of 4 million values, and for 100,000 tf.Examples, do not stay."""
    monkeypatch.setenv("MALLOC_CONF", "dirty_decay_ms:0,muzzy_decay_ms:0")
    name = "masked_attention"
    cases = {case.format: case for case in cases_of(exported(name), (2,))}
    examples = predict_pb2.PredictRequest.FromString(cases["examples"].message)
    (strings,) = examples.inputs.values()
    strings.string_val[:] = list(strings.string_val) * 50_000
    strings.tensor_shape.dim[0].size = 100_000
    large = (with_wide_list(name, cases["columnar"], 1 << 22), examples.SerializeToString())
    usual = [case.message for case in cases.values() if case.format != "rest"]
    with (
        serve([exported(name)], "one worker", tmp_path) as server,
        grpc.insecure_channel(server.target) as channel,
    ):
        predict = channel.unary_unary(METHOD)

        def anonymous() -> float:
            for message in usual * 10:
                predict(message, timeout=120)
            return Metrics(server).value(":colcast:anonymous_memory_bytes")

        before = anonymous()
        for message in large:
            assert predict.future(message, timeout=120).code() is grpc.StatusCode.OK
        assert anonymous() - before < 8 << 20


def _complaints(expected: Expected, variant: str, kind: str, tally: Tally) -> list[str]:
    found = []
    if tally.wrong:
        found.append(f"{tally.wrong} of {tally.answers} wrong, such as {tally.shown}")
    if tally.inexact and "batching" not in variant and variant != "late examples":
        found.append(f"{tally.inexact} of {tally.answers} differ in bits")
    # The server refuses requests of several users if an output has no rows.
    may_refuse = expected is Expected.INTERACTING and kind == "late of users"
    refused = (
        f"{times} times {said}"
        for said, times in tally.refused.items()
        if not (may_refuse and said.startswith("FAILED_PRECONDITION: output "))
    )
    return [*found, *refused]


def _check_gain(server: ServerProcess, name: str, cases: list[Case], variant: str) -> None:
    """Checks that the server caches, joins and splits independent rows."""
    for store in ("user", "item"):
        assert _sum(server, "states_found", name, store=store), (name, store)
    late = [case for case in cases if case.format == "late"]
    alone = max((case for case in cases if case.format == "repeated"), key=lambda c: len(c.message))

    def some_ran_together() -> bool:
        with busy(server, alone):
            hammer(server, name, late, EACH)
        return _sum(server, "joined_requests", name) > 0

    wait_until(some_ran_together)
    if variant == "batching, split":
        assert _sum(server, "divided_requests", name), name


def _sum(server: ServerProcess, metric: str, name: str, **labels: str) -> float:
    wanted = {"model_name": name, **labels}.items()
    found = (s for s in Metrics(server).samples if s.name == f":colcast:{metric}_total")
    return sum(sample.value for sample in found if wanted <= sample.labels.items())


def _tally(given: Any, kind: str) -> Tally:
    tally, answer = Tally(), {"score": np.float32([1.0, 2.0])}
    tally.add(Case(kind, b"", "columnar_late", answer), {"score": np.float32(given)})
    return tally


def test_the_tally_counts_other_scores_and_shapes_and_rounding_where_bits_are_promised() -> None:
    for given in ([1.0, 2.1], [2.0, 1.0], [1.0, np.nan], [1.0], [[1.0, 2.0]], 1.0):
        assert _tally(given, "late").wrong == 1
    for kind, given, inexact in (
        ("late", 2.000001, 0),
        ("columnar", 2.000001, 1),
        ("columnar", 2.0, 0),
    ):
        found = _tally([1.0, given], kind)
        assert (found.wrong, found.inexact) == (0, inexact)


def test_rows_with_nan_are_scored_by_the_whole_model_and_counted(
    exported: Callable[[str], Exported], tmp_path: Path
) -> None:
    model = exported("nan_in_item_price")
    with serve([model], "default", tmp_path) as server:
        found = hammer(server, model.model.name, cases_of(model, (1, 2, 20)), 400)
        counted = {
            (sample.labels["program"], sample.labels["outcome"])
            for sample in Metrics(server).samples
            if sample.name == ":colcast:program_total" and sample.value
        }
    assert not any(tally.wrong or tally.inexact or tally.refused for tally in found.values()), found
    assert {("stages", "failed"), ("stages", "ok"), ("whole", "ok")} <= counted


STAGES = {f"columnar_{stage}" for stage in ("user", "item", "pair")}


def test_the_export_reaches_the_expected_verdict(group: Models) -> None:
    for name, exported in group.items():
        independence, expected = exported.record["independence"], exported.model.expected
        columnar = independence["columnar"]
        if expected is Expected.INDEPENDENT:
            _check_stages(name, exported)
        elif expected is Expected.LENGTH:
            assert not columnar["rows"] or columnar["own_length"], name
        else:
            assert not columnar["rows"], name
            assert columnar["why_not"], name
        if expected is Expected.INTERACTING:
            assert not independence["columnar_late"]["rows"], name
        if expected is Expected.REFUSED:
            assert columnar["why_not"].endswith(")"), columnar["why_not"]


def _check_stages(name: str, exported: Exported) -> None:
    independence = exported.record["independence"]
    assert independence.keys() >= STAGES, name
    own = set(exported.model.own_length)
    assert own == {name for each in independence.values() for name in each["own_length"]}, name
    for signature, found in independence.items():
        assert (found["rows"], found["why_not"]) == (True, ""), (name, signature)
        users = exported.user_features() & {*found["own_length"]}
        assert not users or signature in ("columnar", "columnar_user"), (name, signature)
    assert exported.record["parts"]["users_per_run"] == exported.model.users_per_run, name
