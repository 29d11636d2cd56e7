"""`colcast compare`: its findings, reports, refusals and page."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from colcast.cli.main import main
from colcast.export import export_saved_model
from colcast.loadtest.compare.agreement import agreement
from colcast.loadtest.compare.page import render
from colcast.loadtest.compare.report import CompareReport
from colcast.loadtest.measure.recording import figures_of
from colcast.server import ServerProcess
from colcast.zoo import wide
from colcast.zoo.examples import serialize_request
from markupsafe import escape
from tensorflow.io import TFRecordWriter
from tensorflow_serving.apis import predict_pb2

from ..models.saving import save_graph
from ..waiting import wait_until
from .conftest import SMALL, recording
from .test_agreement import REQUEST, answer, refused

SIZES = (4, 12, 3)  # candidates per recorded request; only the second has more than ten
BUCKET = "item_000"  # an int64 feature whose bucket is its remainder
ALL_VERSIONS = """model_config_list {{ config {{ name: "small" model_platform: "tensorflow"
  base_path: "{}" model_version_policy {{ all {{}} }} }} }}"""


def traffic() -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    for seed, size in enumerate(SIZES):
        yield from islice(wide.requests(SMALL, size, seed), 1)


def changed_bucket() -> int:
    """The bucket that candidate 7 of request 1 falls into."""
    _, items = list(traffic())[1]
    return int(items[7][BUCKET]) % SMALL.buckets


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A recording of requests to another model, in a version or with a label that it lacks."""
    log = tmp_path_factory.mktemp("recorded") / "log.tfrecord"
    with TFRecordWriter(str(log)) as writer:
        for number, (user, items) in enumerate(traffic()):
            request = predict_pb2.PredictRequest()
            request.model_spec.name = "live"
            if number == 1:
                request.model_spec.version_label = "canary"
            else:
                request.model_spec.version.value = 77
            request.inputs["examples"].CopyFrom(
                tf.make_tensor_proto(serialize_request(user, items))
            )
            writer.write(request.SerializeToString())
    return f"requests:{log}"


def write(folder: Path, make: Callable[[wide.WideModule], Callable[..., Any]]) -> None:
    """Saves the model `small` with the signature that `make` returns."""
    module = wide.WideModule(SMALL)
    tf.saved_model.save(module, str(folder), signatures={"serving_default": make(module)})


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Serves four versions: 2 has a changed weight, 3 another output, and 4 refuses five rows."""
    folder = tmp_path_factory.mktemp("versions")
    examples = tf.TensorSpec([None], tf.string, name="examples")

    def changed(module: wide.WideModule) -> Any:
        module.tables[BUCKET][changed_bucket(), 0].assign(9.0)
        return module.serve

    def renamed(module: wide.WideModule) -> Any:
        return tf.function(
            lambda examples: {"other": module.serve(examples)["score"]}, input_signature=[examples]
        )

    def refusing(module: wide.WideModule) -> Any:
        def serve(examples: Any) -> Any:
            few = tf.debugging.assert_less(tf.shape(examples)[0], 5, "too many rows")
            with tf.control_dependencies([few]):
                return module.serve(tf.identity(examples))

        return tf.function(serve, input_signature=[examples])

    makers = (lambda module: module.serve, changed, renamed, refusing)
    for version, make in enumerate(makers, 1):
        write(folder / "small" / str(version), make)
    config = folder / "models.config"
    config.write_text(ALL_VERSIONS.format(folder / "small"))
    with ServerProcess(flags=[f"--model_config_file={config}"]) as server:
        # The server is ready after the first version, so wait for the others.
        wait_until(lambda: server.log().count(": serving, loaded in") == len(makers))
        yield server


def compare(folder: Path, *args: str, code: int = 0) -> dict[str, Any]:
    """Runs a short comparison; returns its report."""
    assert main(["compare", "--rounds", "1", "--output", str(folder), *args]) == code
    assert "<h1>" in (folder / "report.html").read_text()
    report: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return report


@pytest.fixture
def between(versions: ServerProcess, recorded: str, tmp_path: Path) -> Callable[..., Any]:
    """A function that compares two versions on the recorded requests."""

    def run(a: int, b: int, *options: str, code: int = 0) -> dict[str, Any]:
        sides = [f"{versions.target}@{version}" for version in (a, b)]
        given = ["--model", "small", "--traffic", recorded, *options]
        return compare(tmp_path, *sides, *given, code=code)

    return run


def test_a_version_is_equal_to_itself(between: Callable[..., Any]):
    limits = ["--max-difference", "0", "--max-relative-difference", "0"]
    limits += ["--min-top10-overlap", "1", "--min-correlation", "1"]
    report = between(1, 1, *limits)
    assert report["answered_by_both"] == report["requests"] == len(SIZES)
    assert report["codes"] == {"A": {"OK": 3}, "B": {"OK": 3}}
    (score,) = report["outputs"]
    assert (score["values"], score["differing"]) == (sum(SIZES), 0)
    assert score["largest_difference"]["difference"] == 0
    assert [one["passed"] for one in report["thresholds"]] == [True] * 4
    assert report["problems"] == []


def test_a_changed_weight_is_found_and_located(between: Callable[..., Any]):
    touched = [
        (number, row)
        for number, (_, items) in enumerate(traffic())
        for row, item in enumerate(items)
        if item[BUCKET] % SMALL.buckets == changed_bucket()
    ]
    report = between(1, 2)
    (score,) = report["outputs"]
    assert score["differing"] == len(touched)
    largest = score["largest_difference"]
    assert (largest["request"], largest["candidate"]) in touched
    assert largest["difference"] == pytest.approx(abs(largest["a"] - largest["b"]))


def test_a_missed_threshold_fails_and_says_what_was_measured(
    between: Callable[..., Any], capsys: pytest.CaptureFixture[str]
):
    limits = ["--max-difference", "1e-9", "--min-correlation", "-1"]
    report = between(1, 2, *limits, code=1)
    verdicts = {one["threshold"]: one for one in report["thresholds"]}
    assert [one["passed"] for one in verdicts.values()] == [False, True]
    assert "request " in verdicts["difference <= 1e-09"]["measured"]
    assert report["problems"] == []
    assert "score: difference <= 1e-09: failed" in capsys.readouterr().out


def test_a_missing_output_fails(between: Callable[..., Any], capsys: pytest.CaptureFixture[str]):
    report = between(1, 3, code=1)
    assert [one["name"] for one in report["other_forms"]] == ["other", "score"]
    assert (
        "score: a different form in 3 of 3 answers, first in request 0: float32 [4] in A, missing"
        in (capsys.readouterr().err)
    )


@pytest.mark.parametrize(("a", "b", "refusing"), [(1, 4, "B"), (4, 1, "A")])
def test_a_request_that_one_refuses_fails(
    between: Callable[..., Any], a: int, b: int, refusing: str
):
    report = between(a, b, "--max-difference", "1e-5", code=1)
    assert report["answered_by_both"] == 2
    assert report["codes"][refusing] == {"OK": 2, "INVALID_ARGUMENT": 1}
    (problem,) = report["problems"]
    other = "B" if refusing == "A" else "A"
    start = f"{refusing} refuses 1 of 3 requests that {other} answers, first request 1: INVALID_ARG"
    assert problem.startswith(start)
    assert "too many rows" in problem
    (verdict,) = report["thresholds"]
    assert verdict["passed"]


def test_folders_are_served_with_their_flags_and_timed(
    exported: Path, recorded: str, tmp_path: Path
):
    """Side A is a SavedModel, served with stock TF Serving's flags; side B is a base path."""
    version = shutil.copytree(exported / "1", tmp_path / "export")
    report = compare(
        *(tmp_path, str(version), str(exported), "--flag-a=--example_transcoding=off"),
        *("--traffic", recorded, "--max-difference", "1e-5", "--min-correlation", "0.999"),
    )
    for side in "AB":
        assert report["figures"][side]["server_cpu_ms"] > 0
        assert report["figures"][side]["codes"] == {"OK": len(SIZES)}
    assert report["settings"]["flags of A"] == "--example_transcoding=off"


def test_formats_of_a_and_b_may_differ(
    served: ServerProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    formats = ["--format", "example", "--format-b", "late", "--sizes", "12", "--distinct", "3"]
    sides = [served.target, served.target, "--model", "small"]
    report = compare(tmp_path, *sides, *formats, "--max-difference", "1e-5", "--json")
    assert report["sides"] == {"A": f"{served.target}, example", "B": f"{served.target}, late"}
    sent = [report["figures"][side]["request_bytes"] for side in "AB"]
    assert sent[1] < sent[0]
    assert json.loads(capsys.readouterr().out) == report


def test_a_format_that_a_side_does_not_have_is_named(
    versions: ServerProcess, recorded: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    command = ["compare", f"{versions.target}@1", f"{versions.target}@2", "--model", "small"]
    command += ["--traffic", recorded, "--format", "example", "--format-b", "late"]
    assert main([*command, "--output", str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith("colcast compare: B: late: ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["h:1"], "Missing argument 'B'"),
        (
            ["h:1", "nowhere", "--model", "m"],
            "'nowhere': expected HOST:PORT, HOST:PORT@VERSION or",
        ),
        (["h:1@new", "h:1", "--model", "m"], "'h:1@new': expected HOST:PORT"),
        (["h:1", ".", "--model", "m"], "'.' has neither saved_model.pb nor a version with one"),
        (["h:1", "h:2"], "--model is missing: A is the server h:1"),
        (
            ["h:1", "h:2", "--model", "m", "--flag-b=--x"],
            "--flag-b: B is h:2, which is already running",
        ),
        (["h:1", "h:2", "--format", "example,late"], "'example,late': expected one format"),
        (["h:1", "h:2", "--format-b", "parquet"], "no format 'parquet'; expected one of example"),
        (["h:1", "h:2", "--min-top10-overlap", "2"], "'--min-top10-overlap': 2.0 is not in"),
        (["h:1", "h:2", "--max-difference", "nan"], "'--max-difference': nan is not a number"),
        (["h:1", "h:2", "--rounds", "-1"], "'--rounds': -1 is not in the range"),
    ],
)
def test_a_wrong_command_line_names_the_culprit(
    options: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.chdir(tmp_path)
    assert main(["compare", *options]) == 2
    first, *others = capsys.readouterr().err.splitlines()
    assert first.startswith("colcast compare: ")
    assert message in first
    assert others == ["Try 'colcast compare --help'."]


def report(**limits: float) -> CompareReport:
    """`buy` is equal in A and B; `click` differs by up to 0.5 and by a NaN; B refuses a request."""
    ramp = np.linspace(0.0, 1.0, 20, dtype=np.float32)
    nan, apart = ramp.copy(), ramp.copy()
    nan[3], apart[7] = np.nan, ramp[7] + 0.5
    answers = [(answer(click=ramp, buy=ramp), answer(click=b, buy=ramp)) for b in (nan, apart)]
    answers.append((answer(click=ramp, buy=ramp), refused("INTERNAL", "no <b>")))
    settings = {"command": "colcast compare <&>", "model": "movies"}
    figures = [figures_of(recording(0, 8.0, 1000)), figures_of(recording(1, 2.0, 100))]
    sides = ("stock:8500, example", "colcast:8500, late")
    found = agreement({"late": [(REQUEST, both) for both in answers]})
    return CompareReport(settings, sides, found, figures, limits, "late", "a test machine")


def test_the_json_has_no_nan_and_says_what_is_infinite():
    values = json.loads(json.dumps(report().as_json(), allow_nan=False))
    click = next(one for one in values["outputs"] if one["name"] == "click")
    largest = click["largest_difference"]
    assert (largest["difference"], largest["b"]) == (None, "NaN")
    assert (largest["request"], largest["candidate"]) == (0, 3)
    assert click["nan"] == {"A": 0, "B": 1}


def test_the_headline_names_the_output_that_differs_most_and_the_cost():
    start = report().headline
    assert start.startswith("click: largest difference infinite (request 0, candidate 3: 0.157895 ")
    assert "B (late) takes 25 % of A's server CPU (2.00 against 8.00 ms)" in start


@pytest.mark.parametrize(
    ("limit", "passed"),
    [
        ({"min_top10_overlap": 0.8}, True),
        ({"min_correlation": 0.99}, False),
        ({"max_difference": 9}, False),
    ],
)
def test_thresholds_hold_for_every_output(limit: dict[str, Any], passed: bool):
    verdicts = {one.series: one.passed for one in report(**limit).verdicts}
    assert verdicts == {"buy": True, "click": passed}


def test_the_page_fetches_nothing_and_escapes_what_it_shows():
    values = report(max_difference=1e-3).as_json()
    page = render(values)
    assert not re.findall(r'(?:src|href)="(?!data:|#)|@import|url\((?!#)|<script', page)
    assert "colcast compare &lt;&amp;&gt;" in page
    for text in (*values["problems"], values["headline"]):
        assert escape(text) in page
    assert page.count("<figure>") == 2
    assert page.count("<tr>") == 3 + 3


def test_without_an_answer_the_page_says_so():
    none = [(REQUEST, (refused("INTERNAL"), refused("INTERNAL")))]
    empty = replace(report(), agreement=agreement({"late": none}), figures=())
    assert empty.problems == ["no request was answered by both"]
    assert "no request was answered by both" in render(empty.as_json())


# A team's own model and its export, at the first attempt.

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


@pytest.mark.parametrize(
    ("signature", "made", "outputs"),
    [
        ("serving_default", "serving_default, columnar, columnar_late", {"classes", "scores"}),
        ("predict=fast", "predict, fast", {"logits", "probabilities"}),
    ],
)
def test_an_export_is_compared_in_all_its_formats(
    tmp_path: Path, signature: str, made: str, outputs: set[str]
):
    save_estimator(tmp_path / "model")
    late = "late" in made
    user = ["user_age"] if late else []
    export_saved_model(
        *(tmp_path / "model", tmp_path / "export/1"),
        signatures=[signature],
        user_features=user,
        late=late,
    )
    sides = [str(tmp_path / "model"), str(tmp_path / "export")]
    assert main(["compare", *sides, "--output", str(tmp_path / "report")]) == 0
    report = json.loads((tmp_path / "report/report.json").read_bytes())
    called = signature.partition("=")[0]
    assert report["settings"]["compared"] == f"A's {called} with B's {made}"
    assert report["requests"] == report["answered_by_both"] == 50 * len(made.split(", "))
    assert report["other_forms"] == []
    formats = ("example", "columnar", "late")[: len(made.split(", "))]
    assert {one["name"] for one in report["outputs"]} == {
        f"{name}, {of}" for name in outputs for of in formats
    }
    for output in report["outputs"]:
        bound = 1e-5 if output["name"].endswith(", late") else 0
        assert output["largest_difference"]["difference"] <= bound
