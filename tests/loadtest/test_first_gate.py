"""`colcast compare` and loadtest work as gates for a team's own models at the first attempt."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import tensorflow as tf
from colcast.cli.main import main
from colcast.export import export_saved_model
from colcast.loadtest.measure.search import Sla
from colcast.loadtest.report.gate import Thresholds, judge, junit
from colcast.server import ServerProcess

from ..models import plain
from ..models.examples import build_flat_graph
from ..models.saving import save_graph
from .conftest import report

v1 = tf.compat.v1
SPEC = {
    "user_age": tf.io.FixedLenFeature([], tf.float32),
    "movie": tf.io.FixedLenFeature([], tf.int64),
}


def save_estimator(folder: Path) -> None:
    """Signatures like an Estimator's: predict and serving_default have different outputs."""
    with tf.Graph().as_default(), v1.Session() as session:
        examples = v1.placeholder(tf.string, [None], "examples")
        parsed = tf.io.parse_example(examples, SPEC)
        weights = v1.get_variable(
            "weights", [32], initializer=v1.random_normal_initializer(seed=1), use_resource=True
        )
        logits = tf.gather(weights, parsed["movie"]) + tf.sin(parsed["user_age"])
        both = tf.stack([-logits, logits], 1)
        session.run(v1.global_variables_initializer())
        names = tf.tile([["0", "1"]], [tf.shape(logits)[0], 1])
        scores = tf.nn.softmax(both)
        sdk = v1.saved_model
        signatures = {
            "predict": sdk.predict_signature_def(
                {"examples": examples}, {"logits": both, "probabilities": scores}
            ),
            "serving_default": sdk.classification_signature_def(examples, names, scores),
            "regression": sdk.regression_signature_def(examples, scores[:, 1]),
        }
        save_graph(folder, session, signatures)


def compare(folder: Path, *command: str) -> dict[str, Any]:
    """Runs the command without options other than --output; returns the report."""
    assert main(["compare", *command, "--output", str(folder / "report")]) == 0
    report: dict[str, Any] = json.loads((folder / "report/report.json").read_bytes())
    return report


SAVED: dict[str, tuple[Callable[[Path], None], str, list[str]]] = {
    "estimator": (save_estimator, "serving_default", ["user_age"]),
    "keras_plain": (plain.functional, "serving_default", ["user_*"]),
    "tf1": (build_flat_graph, "serving_default", []),
}


@pytest.fixture(scope="module", params=SAVED)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The name and folder of a model, and the folder of its export."""
    save, signature, user = SAVED[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    save(folder / "model")
    export_saved_model(
        *(folder / "model", folder / "export/1"),
        signatures=[signature],
        user_features=user,
        late=bool(user),
    )
    return request.param, folder / "model", folder / "export"


def test_an_export_is_compared_in_all_its_formats(pair: Any, tmp_path: Path):
    name, model, export = pair
    report = compare(tmp_path, str(model), str(export))
    late = [] if name == "tf1" else ["columnar_late"]
    made = ", ".join(["serving_default", "columnar", *late])
    assert report["settings"]["compared"] == f"A's serving_default with B's {made}"
    assert report["requests"] == report["answered_by_both"] == 50 * (2 + len(late))
    assert report["other_forms"] == []
    for output in report["outputs"]:
        bound = 1e-5 if output["name"].endswith(", late") else 0
        assert output["largest_difference"]["difference"] <= bound


def test_a_signature_that_was_exported_by_its_name_is_compared(tmp_path: Path):
    save_estimator(tmp_path / "model")
    export_saved_model(tmp_path / "model", tmp_path / "export", signatures=["predict=fast"])
    report = compare(tmp_path, str(tmp_path / "model"), str(tmp_path / "export"))
    assert report["settings"]["compared"] == "A's predict with B's predict, fast"
    assert {it["name"] for it in report["outputs"]} == {
        f"{name}, {of}" for name in ("logits", "probabilities") for of in ("example", "columnar")
    }


def test_a_threshold_is_judged_for_every_series():
    results = report(errors=3, with_search=False).results
    thresholds = Thresholds((Sla(95, 12.0),), max_errors=0)
    verdicts = judge(results, thresholds)
    assert [(it.series, it.threshold, it.passed) for it in verdicts] == [
        ("example", "p95 <= 12 ms", False),
        ("example", "errors <= 0", False),
        ("repeated", "p95 <= 12 ms", True),
        ("repeated", "errors <= 0", True),
        ("columnar", "p95 <= 12 ms", True),
        ("columnar", "errors <= 0", True),
    ]
    assert str(verdicts[1]) == "example: errors <= 0: failed, 3"


def test_a_late_generator_is_named_where_a_threshold_is_missed():
    results = report(with_search=False).results
    recording = results[0].recording
    recording.calls = [call._replace(sent=call.due + 0.05) for call in recording.calls]
    (missed, _, _) = judge(results, Thresholds((Sla(95, 1.0),)))
    assert missed.measured.endswith("ms; the load generator was late")


def test_junit_has_a_case_per_threshold_and_one_for_the_answers():
    results = report(errors=3, with_search=False).results
    verdicts = judge(results, Thresholds(max_errors=2))
    suite = ElementTree.fromstring(junit(verdicts, ["columnar: 3 of 200 checked answers differ"]))
    assert (suite.get("tests"), suite.get("failures")) == ("4", "2")
    messages = [failure.get("message") for failure in suite.iter("failure")]
    assert messages == ["3", "columnar: 3 of 200 checked answers differ"]


@pytest.mark.parametrize(("limit", "code"), [("10s", 0), ("0.001ms", 1)])
def test_a_gate_passes_or_fails(served: ServerProcess, tmp_path: Path, limit: str, code: int):
    command = ["loadtest", "--target", served.target, "--model", "small", "--formats", "columnar"]
    command += ["--rate", "50", "--windows", "1", "--seconds", "0.5", "--distinct", "3"]
    command += ["--sla-p95", limit, "--max-errors", "0", "--timeout", "30"]
    junit_file = tmp_path / "result.xml"
    assert main([*command, "--output", str(tmp_path), "--junit", str(junit_file)]) == code
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["passed"] == (code == 0)
    assert ElementTree.parse(junit_file).getroot().get("failures") == f"{code}"
