"""The verdict of an export: five lines without op names, and a page with all findings."""

import json

import pytest
from colcast.cli.main import main
from colcast.export import export_saved_model
from colcast.export.report._cost import SIZES
from colcast.export.report._report import FILE, PAGE

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


def test_the_page_has_the_details_that_the_lines_omit(embedded, tmp_path):
    report = export_saved_model(embedded, tmp_path / "out", user_features=["user_*"], late=True)
    page = (tmp_path / "out" / PAGE).read_text()
    assert "<svg" in page
    assert all(f"<td>{feature.name}</td>" in page for feature in report.signatures[0].features)
    assert all(state.tensor not in page for state in report.signatures[0].stages.user_states)
    assert str(tmp_path) not in page
