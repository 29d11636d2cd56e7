"""Command lines that start TensorFlow Serving start this server."""

import contextlib
import re
import urllib.error
from functools import cache

import pytest
from colcast.server import ServerProcess

from .conftest import RANKER_INPUTS
from .metrics_page import Metrics

# The flags of the command lines in TensorFlow Serving's documentation and in its issues #675, #836,
# #1253, #1267, #1451 and #1735. Paths and ports are the test's; the words are theirs.
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
    """The files that command lines name, by the name in braces."""
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
    """Servers by the name of their command line."""
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


def test_flags_without_effect_are_told_in_a_line_each_and_defaults_are_not(started):
    warned = re.findall(r"WARNING (--\S+) has no effect: \w", started("configuration file").log())
    assert sorted(warned) == [
        "--enable_per_model_batching_parameters=true",
        "--grpc_max_threads=64",
        "--rest_api_num_threads=16",
    ]
