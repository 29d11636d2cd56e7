"""The verdict of an export: five lines without op names, and a page with all findings."""

import dataclasses
import json

import pytest
from colcast.cli.main import main
from colcast.export import export_saved_model
from colcast.export.convert._features import Feature, Kind
from colcast.export.report._cost import SIZES, Cost, Way, served_ms
from colcast.export.report._recorded import read_report
from colcast.export.report._report import FILE, PAGE
from colcast.export.report._verdict import _without_ops, expected, limit_and_step, verdict
from colcast.export.trials._rows import Rows

HEADINGS = ["written", "proved", "expected", "limits", "next step"]


def export(capsys, model, output, *options):
    """Exports by the command line and returns what it printed, by heading."""
    command = ["export", "--saved-model", str(model), "--output", str(output), *options]
    assert main(command) == 0
    printed = capsys.readouterr().out
    lines = [line.partition(":") for line in printed.splitlines()]
    return printed, {heading: text.strip() for heading, _, text in lines if heading in HEADINGS}


@pytest.fixture(autouse=True)
def wide_console(monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")


def test_export_ends_with_five_lines_without_names_of_ops(embedded, tmp_path, capsys):
    options = "--user-features", "user_*", "--late"
    printed, lines = export(capsys, embedded, tmp_path / "out", *options)
    assert list(lines) == HEADINGS
    assert len(printed.splitlines()) == len(HEADINGS) + 1
    assert "columnar_late (the user part once per request)" in lines["written"]
    assert "columnar is bit-identical on 200 generated rows" in lines["proved"]
    assert lines["expected"].startswith("server CPU compared with tf.Examples: at 20 candidates ")
    assert "--examples FILE" in lines["next step"]
    assert "columnar/" not in printed


def test_a_domain_without_a_stage_is_named_with_the_reason(embedded, tmp_path, capsys):
    options = "--user-features", "user_*", "--domain", "film=movie", "--late"
    printed, lines = export(capsys, embedded, tmp_path / "out", *options)
    assert (
        "stages for user, item; none for film: its states take 16 bytes per row" in lines["written"]
    )
    assert "columnar_pair/" not in printed


def test_names_of_ops_are_removed_and_the_text_around_them_stays(embedded, tmp_path):
    report = export_saved_model(embedded, tmp_path / "out").signatures[0]
    said = "rows mix: Softmax (columnar_pair/late/item/Softmax): it reduces over rows, columnar/x."
    assert _without_ops(said, report) == "rows mix: Softmax (an op): it reduces over rows, an op."


def test_without_late_it_shows_what_late_would_add(embedded, tmp_path, capsys):
    _, lines = export(capsys, embedded, tmp_path / "out", "--user-features", "user_*")
    assert lines["limits"] == "the user part runs for every candidate"
    assert lines["next step"].startswith("--late")


def test_without_user_features_the_next_step_is_to_name_them(embedded, tmp_path, capsys):
    _, lines = export(capsys, embedded, tmp_path / "out")
    assert lines["next step"].startswith("--user-features")


def test_costs_are_recorded_at_every_size(embedded, tmp_path):
    report = export_saved_model(
        embedded, tmp_path / "out", user_features=["user_*"], late=True, measure_seconds=2
    )
    (signature,) = report.signatures
    costs = json.loads((tmp_path / "out" / FILE).read_bytes())["signatures"]["columnar"]["costs"]
    assert [cost["candidates"] for cost in costs[::2]] == list(SIZES)
    for cost in signature.costs:
        assert 0 < cost.least_ms <= cost.cpu_ms <= cost.most_ms
    examples, late = (cost for cost in signature.costs if cost.candidates == SIZES[-1])
    assert (examples.signature, late.signature) == ("serving_default", "columnar_late")
    assert late.bytes < examples.bytes
    assert read_report(tmp_path / "out").signatures == report.signatures


def test_nothing_is_measured_unless_asked_for(embedded, tmp_path):
    (signature,) = export_saved_model(embedded, tmp_path / "out").signatures
    assert signature.costs == ()
    assert dict(verdict(signature))["expected"] == "not measured"


def test_the_page_has_the_details_that_the_lines_omit(embedded, tmp_path):
    report = export_saved_model(embedded, tmp_path / "out", user_features=["user_*"], late=True)
    page = (tmp_path / "out" / PAGE).read_text()
    assert "<svg" in page
    assert all(f"<td>{feature.name}</td>" in page for feature in report.signatures[0].features)
    assert all(state.tensor not in page for state in report.signatures[0].stages.user_states)
    assert str(tmp_path) not in page


def test_a_loop_is_named_by_its_feature_with_what_to_change(embedded, tmp_path):
    report = export_saved_model(embedded, tmp_path / "out", user_features=["user_*"], late=True)
    (signature,) = report.signatures
    why = "columnar/lstm/While:0 over user_genres stays at N rows: control flow (While)"
    object.__setattr__(signature.late, "slowest_refused", why)
    assert limit_and_step(signature)[1].startswith("unroll=True")
    limits = dict(verdict(signature))["limits"]
    assert limits == "an op over user_genres stays at N rows: control flow (While)"


def costs(*of_each: tuple[int, float, float, float]) -> tuple[Cost, ...]:
    """Costs from tuples (candidates, source's CPU, late signature's CPU, quartiles' spread)."""
    return tuple(
        cost
        for size, before, after, spread in of_each
        for cost in (
            Cost(size, "serving_default", 1000 * size, before, before, before),
            Cost(size, "columnar_late", 100 * size, after, after - spread, after + spread),
        )
    )


def test_each_size_has_one_figure_and_its_spread_in_words(embedded, tmp_path):
    (made,) = export_saved_model(embedded, tmp_path / "out").signatures
    measured = costs((20, 1.0, 0.98, 0), (100, 4.0, 2.0, 0.1), (500, 20.0, 5.0, 1.0))
    assert expected(dataclasses.replace(made, costs=measured)) == (
        "server CPU compared with tf.Examples: at 20 candidates nothing is gained (1 ms);"
        " at 100 candidates 50 % (2 instead of 4 ms, steady);"
        " at 500 candidates 25 % (5 instead of 20 ms, give or take a fifth); 10 % of the bytes"
        " (nothing cached, generated rows, one thread)"
    )


def test_a_server_takes_less_for_each_of_many_inputs_and_more_for_bytes():
    def way(inputs: int, size: int) -> Way:
        return Way("columnar", None, dict.fromkeys(map(str, range(inputs))), size)

    assert served_ms(1.0, way(200, 1_000_000)) == pytest.approx(1.0 - 0.1 + 0.06 + 1.0)
    assert served_ms(0.01, way(200, 0)) == pytest.approx(0.06)


@pytest.mark.parametrize("user", [[], ["user_*"]])
def test_recorded_requests_are_suggested_only_if_missing(embedded, tmp_path, user):
    report = export_saved_model(embedded, tmp_path / "out", user_features=user, late=bool(user))
    (made,) = report.signatures
    given = dataclasses.replace(made, parity=dataclasses.replace(made.parity, recorded_rows=9))
    assert "--examples" not in limit_and_step(given)[1]
    if user:
        stages = dataclasses.replace(given.stages, domains=(), reason="why")
        assert "--examples" not in limit_and_step(dataclasses.replace(given, stages=stages))[1]


def test_ordinary_rows_have_values_as_large_as_those_of_requests():
    features = (
        Feature("id", Kind.FIXED_LEN, "int64"),
        Feature("word", Kind.FIXED_LEN, "string"),
        Feature("price", Kind.FIXED_LEN, "float32"),
    )
    values = {"id": [[-(1 << 62)], None], "word": [[b"x" * 40], [b""]], "price": [[1e6], [-3.0]]}
    small = Rows.of(features, values).everyday().columns()
    assert all((small["id"] >= 0) & (small["id"] < 100_000))
    assert small["word"].tolist() == [b"x" * 12, b"v1"]
    assert all(abs(small["price"]) < 1)
