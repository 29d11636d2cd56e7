"""Parameters of unknown rank pass as they came, and conditions of several values are refused."""

import json
from typing import Any

import numpy as np
import pytest
from colcast.client import RankingClient

from .. import models
from .inference_client import InferenceClient
from .servers import AS_SAVED, BATCHING, Stubs
from .test_rest import Rest

X = np.ones([2, 4], np.float32)
HALVES = [[0.5] * 4] * 2
NO_SCALAR = "The second input must be a scalar, but it has shape [2]"


@pytest.fixture(
    scope="module",
    params=[(), AS_SAVED, BATCHING],
    ids=["default", "as saved", "batching"],
)
def stubs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, serve: Any
) -> Stubs:
    base_path = tmp_path_factory.mktemp("parameters")
    models.build("parameters", base_path / "1")
    return serve(base_path, *request.param)


def answer(stubs: Stubs, inputs: dict[str, Any], form: str, signature: str = "") -> Any:
    """The answer's rows, or the error's text."""
    signature = signature or "serving_default"
    if form in ("grpc", "json"):
        client = InferenceClient(stubs.server, form)
        try:
            return client.infer(inputs, signature, model=stubs.model).as_numpy("y").tolist()
        except Exception as error:
            return str(error)
    if form == "predict":
        try:
            answered = stubs.predict(inputs, signature_name=signature)
        except Exception as error:
            return str(error)
        return answered["y"].tolist()
    return over_rest(stubs, signature, inputs={k: v.tolist() for k, v in inputs.items()})


def over_rest(stubs: Stubs, signature: str, **body: Any) -> Any:
    text = json.dumps({"signature_name": signature, **body})
    _, content = Rest(stubs).ask("POST", ":predict", text)
    answered = json.loads(content)
    return answered.get("outputs", answered.get("predictions", answered.get("error")))


FORMS = ["predict", "rest", "grpc", "json"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("keep", [0.5, [0.5]])
@pytest.mark.parametrize("training", [False, True])
def test_a_parameter_passes_as_it_came(stubs: Stubs, form: str, keep: Any, training: bool) -> None:
    inputs = {"x": X, "keep": np.float32(keep), "training": np.array(training)}
    assert answer(stubs, inputs, form) == ([[0.0] * 4] * 2 if training else HALVES)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("signature", "parameters"),
    [
        ("serving_default", {"keep": np.float32(0.5), "training": np.array([False, False])}),
        ("nested", {"training": np.array([False, True])}),
        ("branches", {"branch": np.int32([0, 1])}),
        ("loop", {"times": np.float32([0, 3])}),
    ],
)
def test_a_condition_of_several_values_is_tensorflows_error(
    stubs: Stubs, form: str, signature: str, parameters: dict[str, Any]
) -> None:
    assert NO_SCALAR in answer(stubs, {"x": X, **parameters}, form, signature)


@pytest.mark.parametrize(
    ("signature", "parameters", "expected"),
    [
        ("nested", {"training": np.array(False)}, [[1.0] * 4] * 2),
        ("nested", {"training": np.array(True)}, [[0.0] * 4] * 2),
        ("branches", {"branch": np.int32(1)}, [[-1.0] * 4] * 2),
        ("loop", {"times": np.float32(3)}, [[3.0] * 4] * 2),
    ],
)
def test_a_scalar_condition_is_obeyed(
    stubs: Stubs, signature: str, parameters: dict[str, Any], expected: Any
) -> None:
    assert answer(stubs, {"x": X, **parameters}, "predict", signature) == expected


@pytest.mark.parametrize(
    ("signature", "parameters", "expected"),
    [
        ("serving_default", {"keep": np.float32([0.5]), "training": np.array([False])}, HALVES),
        ("serving_default", {"keep": np.float32(0.5), "training": np.array([[False]])}, HALVES),
        ("nested", {"training": np.array([False])}, [[1.0] * 4] * 2),
        ("nested", {"training": np.array([True])}, [[0.0] * 4] * 2),
        ("loop", {"times": np.float32([3])}, [[3.0] * 4] * 2),
    ],
)
def test_a_condition_of_one_value_is_that_value(
    stubs: Stubs, signature: str, parameters: dict[str, Any], expected: Any
) -> None:
    assert answer(stubs, {"x": X, **parameters}, "predict", signature) == expected


def test_a_branch_is_a_scalar_as_tensorflow_has_it(stubs: Stubs) -> None:
    said = answer(stubs, {"x": X, "branch": np.int32([1])}, "predict", "branches")
    assert "must be a scalar, but it has shape [1]" in said


def test_instances_give_each_row_a_value(stubs: Stubs) -> None:
    row = {"x": [1.0] * 4, "keep": 0.5, "training": False}
    assert NO_SCALAR in over_rest(stubs, "serving_default", instances=[row, row])
    assert over_rest(stubs, "serving_default", instances=[row]) == HALVES[:1]


@pytest.mark.parametrize("target", ["auto", "columnar", "stock", "repeated"])
def test_the_client_sends_a_parameter_as_the_user_gives_it(stubs: Stubs, target: Any) -> None:
    with RankingClient(stubs.server.target, stubs.model, timeout_seconds=60) as client:
        items = [{"x": [1.0] * 4}, {"x": [2.0] * 4}]
        asked = {"keep": 0.5, "training": False}
        ranking = client.rank(user=asked, items=items, target=target)
        assert ranking.outputs["y"].tolist() == [[0.5] * 4, [1.0] * 4]
