"""What an export did: its verdict, its page, and `colcast inspect`, also of a model to export."""

import json
from pathlib import Path

import pytest
import tensorflow as tf
from colcast.cli.main import main
from colcast.export import export_saved_model
from colcast.export.report._cost import SIZES
from colcast.export.report._recorded import read_record
from colcast.export.report._report import FILE, PAGE
from colcast.export.report._verdict import verdict

from .conftest import save


def inspect(folder: Path, *options: str) -> int:
    return main(["inspect", str(folder), *options])


def contents(folder: Path) -> dict[Path, bytes | None]:
    """Every path below a folder, with the bytes of files."""
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def unwrapped(printed: str) -> str:
    """The output as one line, because narrow consoles wrap it."""
    return " ".join(printed.split())


@pytest.fixture(autouse=True)
def wide_console(monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")


@pytest.fixture(scope="module")
def exported(embedded, tmp_path_factory):
    output = tmp_path_factory.mktemp("exported") / "3"
    report = export_saved_model(embedded, output, user_features=["user_*"], late=True)
    return output, report


def test_defaults_of_strings_are_recorded_and_shown(exported_report, tmp_path, capsys):
    spec = {
        f"x{number}": tf.io.FixedLenFeature([], tf.string, default_value=default)
        for number, default in enumerate([b"\xff", b"[a]", "\u00e9".encode()])
    }
    exported_report(spec, lambda f: tf.strings.length(f["x0"]))
    recorded = read_record(tmp_path / "out")["signatures"]["columnar"]["features"]
    assert [of["default"] for of in recorded.values()] == [[{"hex": "ff"}], ["[a]"], ["\u00e9"]]
    assert inspect(tmp_path / "out") == 0
    printed = capsys.readouterr().out
    assert all(f'"{shown}"' in printed for shown in ("ff", "[a]", "\u00e9"))


def test_exported_model_shows_the_tables_of_its_export(exported, capsys):
    output, report = exported
    before = contents(output)
    assert inspect(output) == 0
    printed = capsys.readouterr().out
    assert "serving_default -> columnar: 4 features" in printed
    assert "user_genres" in printed
    assert "[?, ?] + length" in printed
    for heading, text in verdict(report.signatures[0]):
        assert " ".join(f"{heading}: {text}".split()) in unwrapped(printed)
    assert "exported in" in printed
    assert contents(output) == before


def test_model_not_exported_shows_what_an_export_would_add(embedded, capsys):
    before = contents(embedded.parent)
    assert inspect(embedded) == 0
    printed = capsys.readouterr().out
    rows = [" ".join(line.split()) for line in printed.splitlines()]
    assert "numbers fixed_len float32 [?, 2] 0.5, -2.0 item" in rows
    assert "movie fixed_len int64 [?] required item" in rows
    assert "user_genres var_len string [?, ?] + length empty item" in rows
    assert "an export would add columnar: 5 columns -> scores" in printed
    assert "nothing was compared, nothing was written" in printed
    assert contents(embedded.parent) == before


def test_json_of_an_exported_model_is_what_was_recorded(exported, capsys):
    output, _ = exported
    assert inspect(output, "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown.pop("folder"), shown.pop("exported")) == (str(output), True)
    recorded = json.loads((output / FILE).read_bytes())
    assert recorded.pop("files")
    assert shown == recorded


def test_json_of_a_model_not_exported(embedded, capsys):
    assert inspect(embedded, "--json", "--user-features", "user_*") == 0
    shown = json.loads(capsys.readouterr().out)
    columnar = shown["signatures"]["columnar"]
    assert not shown["exported"]
    assert columnar["outputs"] == ["scores"]
    assert {name: it["side"] for name, it in columnar["features"].items()} == {
        "movie": "item", "numbers": "item", "user_age": "user", "user_genres": "user",
    }  # fmt: skip
    assert inspect(embedded, "--json", "--signature", "none") == 1
    assert "'none'" in json.loads(capsys.readouterr().out)["refused"]


def test_refusal_is_that_of_the_export(tmp_path, capsys):
    save(tmp_path / "model", [tf.TensorSpec([2], name="x")], lambda x: {"scores": 2.0 * x})
    assert inspect(tmp_path / "model") == 1
    out = unwrapped(capsys.readouterr().out)
    assert main(["export", f"--saved-model={tmp_path / 'model'}", f"--output={tmp_path / 'o'}"])
    reason = capsys.readouterr().err.strip().removeprefix("colcast export: ")
    assert "it takes whole float32 [2]" in reason
    assert out.startswith("an export would refuse")
    assert out.endswith(reason)


def test_base_path_shows_the_highest_version(exported, tmp_path, capsys):
    for version in ("9", "10"):
        (tmp_path / version).symlink_to(exported[0])
    (tmp_path / "11").mkdir()
    assert inspect(tmp_path) == 0
    assert f"{tmp_path / '10'}: exported in" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("folder", "reason"),
    [("none", "no such folder"), ("empty", "holds no saved_model.pb, so it is not a SavedModel")],
)
def test_the_error_for_a_missing_saved_model_is_one_line(tmp_path, capsys, folder, reason):
    (tmp_path / "empty").mkdir()
    assert inspect(tmp_path / folder) == 1
    assert capsys.readouterr().err == f"colcast inspect: {tmp_path / folder}: {reason}\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not what an export writes (JSONDecodeError"),
        ("{}", "not what an export writes (KeyError: 'format')"),
        ('{"format": 99}', "has format 99, expected 1"),
    ],
)
def test_damaged_record_is_one_line(tmp_path, capsys, text, reason):
    (tmp_path / "saved_model.pb").touch()
    (tmp_path / FILE).parent.mkdir()
    (tmp_path / FILE).write_text(text)
    assert inspect(tmp_path) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"colcast inspect: {tmp_path / FILE}: {reason}")
    assert error.count("\n") == 1


HEADINGS = ["written", "proved", "expected", "limits", "next step"]


def export(capsys, model, output, *options):
    """Runs `colcast export` and returns the printed sections by heading."""
    command = ["export", "--saved-model", str(model), "--output", str(output), *options]
    assert main(command) == 0
    printed = capsys.readouterr().out
    lines = [line.partition(":") for line in printed.splitlines()]
    return printed, {heading: text.strip() for heading, _, text in lines if heading in HEADINGS}


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
