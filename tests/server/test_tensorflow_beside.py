"""Another TensorFlow beside the server than the one it was built for."""

import shutil
import subprocess
from importlib import metadata

import pytest
from colcast.server import _tensorflow, find_executable


def installed(monkeypatch, *, loads, **versions):
    """Distributions as pip has them, and what TensorFlow's library says of itself."""
    monkeypatch.setattr(_tensorflow, "requires", lambda name: ["tensorflow-cpu==2.20.0"])
    monkeypatch.setattr(_tensorflow, "_loaded_version", lambda: loads)

    def version(name):
        if name not in versions:
            raise metadata.PackageNotFoundError(name)
        return versions[name]

    versions = {name.replace("_", "-"): of for name, of in versions.items()}
    monkeypatch.setattr(_tensorflow, "version", version)


def test_the_one_that_is_wanted_is_no_matter(monkeypatch):
    installed(monkeypatch, loads=None, tensorflow_cpu="2.20.0")
    assert _tensorflow.wrong_tensorflow() is None


def test_another_over_it_is_told_with_the_command_that_mends_it(monkeypatch):
    installed(monkeypatch, loads="2.21.0", tensorflow_cpu="2.20.0", tensorflow="2.21.0")
    told = _tensorflow.wrong_tensorflow()
    assert "built for TensorFlow 2.20.0, found 2.21.0" in told
    assert "pip uninstall -y tensorflow && pip install" in told
    assert "--no-deps tensorflow-cpu==2.20.0" in told


def test_files_that_were_put_back_are_enough(monkeypatch):
    installed(monkeypatch, loads="2.20.0", tensorflow_cpu="2.20.0", tensorflow="2.21.0")
    assert _tensorflow.wrong_tensorflow() is None


@pytest.mark.parametrize("library", [b"not a library", None])
def test_the_server_says_what_it_found_and_wanted(tmp_path, library):
    executable = tmp_path / "colcast_server" / "bin" / "colcast_model_server"
    executable.parent.mkdir(parents=True)
    shutil.copy(find_executable(), executable)
    if library is not None:
        (executable.parent / "libcolcast_engine.so").write_bytes(library)
    command = [executable, "--port=0", f"--model_base_path={tmp_path}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "it needs TensorFlow 2.20.0, beside the server lies none" in done.stderr
    assert "pip install --force-reinstall --no-deps tensorflow-cpu==2.20.0" in done.stderr
