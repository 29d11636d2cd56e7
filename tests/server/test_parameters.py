"""Parameters of unknown rank are passed unchanged; TensorFlow Serving's command lines work."""

import contextlib
import json
import re
import urllib.error
from functools import cache
from typing import Any

import numpy as np
import pytest
from colcast.client import RankingClient
from colcast.server import ServerProcess

from .. import models
from .conftest import RANKER_INPUTS
from .inference_client import InferenceClient
from .metrics_page import Metrics
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
    """Calls the model in one form; returns the answer's rows, or the error message."""
    signature = signature or "serving_default"
    if form == "grpc":
        client = InferenceClient(stubs.server)
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


FORMS = ["predict", "rest", "grpc"]


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


@pytest.mark.parametrize("target", ["auto", "columnar", "stock", "repeated"])
def test_the_client_sends_a_parameter_as_the_user_gives_it(stubs: Stubs, target: Any) -> None:
    with RankingClient(stubs.server.target, stubs.model, timeout_seconds=60) as client:
        items = [{"x": [1.0] * 4}, {"x": [2.0] * 4}]
        asked = {"keep": 0.5, "training": False}
        ranking = client.rank(user=asked, items=items, target=target)
        assert ranking.outputs["y"].tolist() == [[0.5] * 4, [1.0] * 4]


# Command lines from TensorFlow Serving's documentation and from its issues #675, #836, #1253,
# #1267, #1451 and #1735. Only paths and ports are the test's own.
COMMAND_LINES = {
    "one model": "--rest_api_port=-1 --model_name=ranker --model_base_path={base} "
    "--enable_batching=true --batching_parameters_file={batching} "
    "--per_process_gpu_memory_fraction=0.4 --saved_model_tags=serve",
    "configuration file": "--model_config_file={config} --model_config_file_poll_wait_seconds=60 "
    "--allow_version_labels_for_unavailable_models=true --file_system_poll_wait_seconds=0 "
    "--rest_api_port=-1 --monitoring_config_file={monitoring} "
    "--enable_model_warmup=true --num_request_iterations_for_warmup=2 "
    "--max_num_load_retries=0 --load_retry_interval_micros=1000 --num_load_threads=2 "
    "--num_unload_threads=2 --enable_serialization_as_tensor_content "
    "--tensorflow_inter_op_parallelism=2 --tensorflow_intra_op_parallelism=2 "
    "--rest_api_num_threads=16 --rest_api_timeout_in_ms=30000 --rest_api_enable_cors_support "
    "--grpc_max_threads=64 --enable_per_model_batching_parameters --enable_profiler=false "
    "--flush_filesystem_caches=true",
    "sessions": "--model_config_file={config} --tensorflow_session_parallelism=2 "
    "--tensorflow_session_config_file={session} --xla_cpu_compilation_enabled=false "
    "--remove_unused_fields_from_bundle_metagraph=true --enable_batching "
    "--enable_per_model_batching_parameters "
    "--grpc_channel_arguments=[grpc.max_concurrent_streams=300]",
}


@pytest.fixture(scope="module")
def files(tmp_path_factory, ranker_base_path):
    """The files of the command lines, by their name in braces."""
    texts = {
        "config": f'model_config_list {{ config {{ name: "ranker" base_path: "{ranker_base_path}" '
        'model_platform: "tensorflow" }}',
        "monitoring": "prometheus_config { enable: true path: '/metrics' }",
        "batching": "max_batch_size { value: 128 } batch_timeout_micros { value: 0 }",
        "session": "intra_op_parallelism_threads: 2 inter_op_parallelism_threads: 2\n"
        "allow_soft_placement: true",
    }
    paths, folder = {"base": ranker_base_path}, tmp_path_factory.mktemp("flags")
    for name, text in texts.items():
        paths[name] = folder / f"{name}.txt"
        paths[name].write_text(text)
    return paths


@pytest.fixture(scope="module")
def started(files):
    """A function that starts a server with one of the command lines, by its name."""
    with contextlib.ExitStack() as running:

        @cache
        def start(name):
            flags = COMMAND_LINES[name].format(**files).split()
            return running.enter_context(ServerProcess(flags=flags))

        yield start


@pytest.mark.parametrize("name", COMMAND_LINES)
def test_a_command_line_of_tensorflow_serving_starts_this_server(name, started, connect):
    stubs = connect(started(name).target)
    scores = stubs.predict(RANKER_INPUTS, output_filter=["score"])["score"]
    assert scores.tolist() == [201, 202, 203]


def test_the_metrics_page_is_where_the_configuration_says(started):
    server = started("configuration file")
    assert Metrics(server, "/metrics").samples
    with pytest.raises(urllib.error.HTTPError, match="404"):
        Metrics(server)


def test_flags_without_effect_are_reported_in_a_line_each_and_defaults_are_not(started):
    warned = re.findall(r"WARNING (--\S+) has no effect: \w", started("configuration file").log())
    assert sorted(warned) == [
        "--enable_per_model_batching_parameters=true",
        "--grpc_max_threads=64",
        "--rest_api_num_threads=16",
    ]
