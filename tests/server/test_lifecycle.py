"""The server starts, fails to start, loads new versions, and stops."""

import json
import re
import shutil
import signal
import socket
import subprocess
import urllib.error

import pytest
import tensorflow as tf
from colcast.server import ServerProcess, find_executable

from .metrics_page import Metrics
from .servers import Stubs


def run_server(*flags):
    """Runs a server that should refuse to start; returns its exit code and its output lines."""
    done = subprocess.run(
        [find_executable(), "--host=127.0.0.1", *flags], capture_output=True, text=True, timeout=120
    )
    return done.returncode, (done.stdout + done.stderr).splitlines()


def test_a_wrong_flag_is_refused_in_one_line():
    """If the log is JSON, so is this line."""
    code, (line,) = run_server("--log_format=json", "--model_base_path=x", "--port=70000")
    assert code == 1
    last = json.loads(line)
    assert last["severity"] == "ERROR"
    assert "--port=70000" in last["message"]


@pytest.mark.parametrize("flag", ["--port", "--rest_api_port"])
def test_a_port_in_use_is_refused_by_name(flag):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, lines = run_server("--port=0", f"{flag}={port}", "--model_base_path=x")
    assert code != 0
    assert len(lines) == 1
    assert f"127.0.0.1:{port}" in lines[0]


def test_a_single_model_that_was_given_up_ends_the_server(tmp_path):
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "saved_model.pb").write_bytes(b"not a graph")
    code, lines = run_server(
        "--port=0", f"--model_base_path={tmp_path}", "--max_num_load_retries=0"
    )
    assert code != 0
    assert re.search(rf"version 1 cannot be loaded from {tmp_path}/1: .", lines[-1])


def test_every_line_of_a_log_may_be_json_and_its_reader_may_exit(
    ranker_base_path, connect, ranker_inputs
):
    flags = ["--host=127.0.0.1", "--port=0", "--model_name=ranker", "--log_format=json"]
    command = [find_executable(), *flags, f"--model_base_path={ranker_base_path}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        lines = []
        while not lines or "ready: gRPC on" not in lines[-1]["message"]:
            lines.append(json.loads(server.stderr.readline()))
        server.stderr.close()
        server.send_signal(signal.SIGHUP)  # the server logs it, to a closed pipe
        stubs = connect(re.search(r"gRPC on (\S+)", lines[-1]["message"])[1])
        assert stubs.predict(ranker_inputs)["score"][0] == 201
        server.terminate()
        assert server.wait(timeout=120) == 0
    assert len(lines) >= 3
    for line in lines:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
        assert line["severity"] in {"INFO", "WARNING", "ERROR"}
    about_version = [line for line in lines if "version" in line]
    assert {(line["model"], line["version"]) for line in about_version} == {("ranker", 3)}
    assert any("serving, loaded in" in line["message"] for line in about_version)


def exported_symbols(binary):
    """The dynamic symbols that a binary defines, except copies of libc's and libstdc++'s."""
    listing = subprocess.run(
        ["nm", "-D", "--defined-only", "--extern-only", binary],
        capture_output=True,
        text=True,
        check=True,
    )
    names = [line.split()[-1] for line in listing.stdout.splitlines()]
    return [name for name in names if not re.search("@(GLIBC|GLIBCXX|CXXABI)_", name)]


ALLOCATOR = (
    "aligned_alloc calloc free malloc malloc_usable_size memalign posix_memalign realloc valloc"
)


def test_the_executable_links_no_tensorflow_and_exports_the_allocator_only():
    executable = find_executable()
    libraries = subprocess.run(["ldd", executable], capture_output=True, text=True, check=True)
    assert "tensorflow" not in libraries.stdout
    assert " ".join(sorted(exported_symbols(executable))) == ALLOCATOR


def test_the_engine_exports_its_entry_point_only():
    (engine,) = find_executable().parent.glob("libcolcast_engine-*.so")
    assert exported_symbols(engine) == ["ColcastCreateEngine"]


ENGINE = f"libcolcast_engine-{tf.__version__}.so"
COMMAND = "pip uninstall -y tensorflow tensorflow-cpu; pip install tensorflow-cpu=="


@pytest.fixture
def executable(tmp_path):
    """The executable in a folder like pip's, but without an engine library."""
    path = tmp_path / "colcast_server" / "bin" / "colcast_model_server"
    path.parent.mkdir(parents=True)
    shutil.copy(find_executable(), path)
    return path


def install_tensorflow(tmp_path, release):
    """Makes a library that claims to be this release of TensorFlow."""
    (tmp_path / "tensorflow").mkdir()
    library = tmp_path / "tensorflow" / "libtensorflow_cc.so.2"
    source = f'extern const char* TF_Version(void) {{ return "{release}"; }}'
    compiler = ["cc", "-shared", "-x", "c", "-", "-o", library]
    subprocess.run(compiler, input=source, text=True, check=True)
    return library


def a_broken_tensorflow(executable, tmp_path):
    (executable.parent / ENGINE).touch()
    install_tensorflow(tmp_path, "2.20.0").write_bytes(b"not a library")


def a_broken_engine(executable, tmp_path):
    (executable.parent / ENGINE).write_bytes(b"not a library")


def an_engine_for_another_tensorflow(executable, tmp_path):
    renamed = executable.parent / "libcolcast_engine-2.99.0.so"
    shutil.copy(find_executable().with_name(ENGINE), renamed)
    shutil.copy(install_tensorflow(tmp_path, "2.99.0"), executable.parent)


@pytest.mark.parametrize(
    ("install", "said"),
    [
        (a_broken_tensorflow, "found TensorFlow that cannot be loaded: "),
        (a_broken_engine, f"{tf.__version__}: {COMMAND}{tf.__version__}"),
        (an_engine_for_another_tensorflow, "cannot open the engine: "),
    ],
)
def test_a_tensorflow_that_does_not_fit_is_refused_with_the_command(
    executable, tmp_path, install, said
):
    install(executable, tmp_path)
    command = [executable, "--port=0", f"--model_base_path={executable.parent}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode != 0
    assert said in done.stderr


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


@pytest.mark.parametrize("name", COMMAND_LINES)
def test_a_command_line_of_tensorflow_serving_starts_this_server(name, files, ranker_inputs):
    with ServerProcess(flags=COMMAND_LINES[name].format(**files).split()) as server:
        scores = Stubs(server.target).predict(ranker_inputs, output_filter=["score"])["score"]
        assert scores.tolist() == [201, 202, 203]
        if name != "configuration file":
            return
        assert Metrics(server, "/metrics").samples
        with pytest.raises(urllib.error.HTTPError, match="404"):
            Metrics(server)
        # Flags without effect are reported in a line each, and defaults are not.
        warned = re.findall(r"WARNING (--\S+) has no effect: \w", server.log())
        assert sorted(warned) == [
            "--enable_per_model_batching_parameters=true",
            "--grpc_max_threads=64",
            "--rest_api_num_threads=16",
        ]
