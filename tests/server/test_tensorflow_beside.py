"""What the server says of another TensorFlow beside it than those that it has an engine for."""

import shutil
import subprocess

import pytest
import tensorflow as tf
from colcast.server import find_executable

ENGINE = f"libcolcast_engine-{tf.__version__}.so"
COMMAND = "pip uninstall -y tensorflow tensorflow-cpu; pip install tensorflow-cpu=="


@pytest.fixture
def executable(tmp_path):
    """As pip installs it, with no engine yet."""
    path = tmp_path / "colcast_server" / "bin" / "colcast_model_server"
    path.parent.mkdir(parents=True)
    shutil.copy(find_executable(), path)
    return path


def refusal(executable):
    command = [executable, "--port=0", f"--model_base_path={executable.parent}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    return done.stderr


def install_tensorflow(tmp_path, release):
    """A library that says of itself what TensorFlow's says."""
    (tmp_path / "tensorflow").mkdir()
    library = tmp_path / "tensorflow" / "libtensorflow_cc.so.2"
    source = f'extern const char* TF_Version(void) {{ return "{release}"; }}'
    compiler = ["cc", "-shared", "-x", "c", "-", "-o", library]
    subprocess.run(compiler, input=source, text=True, check=True)
    return library


def test_another_release_is_refused_by_name_with_the_command(executable, tmp_path):
    for release in ("2.20.0", "2.21.0"):
        (executable.parent / f"libcolcast_engine-{release}.so").touch()
    install_tensorflow(tmp_path, "2.19.1")
    said = refusal(executable)
    assert "found TensorFlow 2.19.1; the server needs TensorFlow 2.20.0 or 2.21.0" in said
    assert f"{COMMAND}2.21.0" in said


def test_none_at_all_is_said_before_any_engine_is_opened(executable):
    for release in ("2.20.0", "2.21.0"):
        (executable.parent / f"libcolcast_engine-{release}.so").touch()
    assert "found no TensorFlow; the server needs" in refusal(executable)


def test_one_that_cannot_be_loaded_is_told_with_the_linkers_reason(executable, tmp_path):
    (executable.parent / ENGINE).touch()
    install_tensorflow(tmp_path, "2.20.0").write_bytes(b"not a library")
    assert "found TensorFlow that cannot be loaded: " in refusal(executable)


def test_an_engine_that_cannot_be_opened_is_told_with_the_command(executable):
    (executable.parent / ENGINE).write_bytes(b"not a library")
    said = refusal(executable)
    assert "cannot open the engine: " in said
    assert f"the server needs TensorFlow {tf.__version__}: {COMMAND}{tf.__version__}" in said


def test_an_engine_for_another_tensorflow_is_not_run(executable, tmp_path):
    shutil.copy(
        find_executable().with_name(ENGINE), executable.parent / "libcolcast_engine-2.99.0.so"
    )
    library = install_tensorflow(tmp_path, "2.99.0")
    shutil.copy(library, executable.parent)
    assert "cannot open the engine: " in refusal(executable)
