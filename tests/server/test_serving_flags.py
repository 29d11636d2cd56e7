"""Command lines that start TensorFlow Serving start this server."""

import re
import subprocess
from pathlib import Path

import pytest
from colcast.server import ServerProcess, find_executable

from .conftest import RANKER_INPUTS

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
    "--rest_api_num_threads=16 --rest_api_timeout_in_ms=30000 --rest_api_enable_cors_support",
    "sessions": "--model_config_file={config} --tensorflow_session_parallelism=2 "
    "--tensorflow_session_config_file={session} --xla_cpu_compilation_enabled=false "
    "--remove_unused_fields_from_bundle_metagraph=true --enable_batching "
    "--enable_per_model_batching_parameters "
    "--grpc_channel_arguments=[grpc.max_concurrent_streams=300]",
}
WITHOUT_EFFECT = (
    "--model_config_file={config} --grpc_max_threads=64 "
    "--enable_per_model_batching_parameters --enable_profiler=false --flush_filesystem_caches=true"
)


@pytest.fixture
def files(tmp_path, ranker_base_path):
    """The files that command lines name, by the name in braces."""
    texts = {
        "config": f'model_config_list {{ config {{ name: "ranker" base_path: "{ranker_base_path}" '
        'model_platform: "tensorflow" }}',
        "monitoring": "prometheus_config { enable: true path: '/metrics' }",
        "batching": "max_batch_size { value: 128 } batch_timeout_micros { value: 0 }",
        "session": "intra_op_parallelism_threads: 2 inter_op_parallelism_threads: 2\n"
        "allow_soft_placement: true",
    }
    paths = {"base": ranker_base_path}
    for name, text in texts.items():
        paths[name] = tmp_path / f"{name}.txt"
        paths[name].write_text(text)
    return paths


@pytest.mark.parametrize("line", COMMAND_LINES.values(), ids=COMMAND_LINES)
def test_a_command_line_of_tensorflow_serving_starts_this_server(line, files, connect):
    with ServerProcess(flags=line.format(**files).split()) as server:
        scores = connect(server.target).predict(RANKER_INPUTS, output_filter=["score"])["score"]
    assert scores.tolist() == [201, 202, 203]


def test_flags_without_effect_are_told_in_a_line_each_and_defaults_are_not(files):
    with ServerProcess(flags=WITHOUT_EFFECT.format(**files).split()) as server:
        log = server.log()
    warned = re.findall(r"WARNING (--\S+) has no effect: \w", log)
    assert warned == [
        "--grpc_max_threads=64",
        "--enable_per_model_batching_parameters=true",
    ]


def test_threads_come_from_the_session_configuration_unless_a_flag_has_them(tmp_path, files):
    def threads(*flags):
        with ServerProcess("ranker", files["base"], flags) as server:
            return len(list(Path(f"/proc/{server.pid}/task").iterdir()))

    config = tmp_path / "many.txt"
    config.write_text("intra_op_parallelism_threads: 24")
    from_file = f"--tensorflow_session_config_file={config}"
    assert threads(from_file) >= threads(from_file, "--tensorflow_intra_op_parallelism=1") + 20


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("--mixed_precision=bfloat16", "precision"),
        ("--platform_config_file=x", "--tensorflow_session_config_file"),
        ("--prefer_tflite_model", "SavedModels only"),
        ("--use_alts_credentials", "--ssl_config_file"),
        ("--tensorflow_session_config_file=NO_SUCH_FILE", "NO_SUCH_FILE"),
    ],
)
def test_what_would_change_answers_and_what_is_misspelt_is_refused_with_the_reason(flag, words):
    done = subprocess.run(
        [find_executable(), "--host=127.0.0.1", "--model_base_path=x", flag],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert flag.split("=")[0] in done.stderr
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
