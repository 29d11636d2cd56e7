"""Variables that no checkpoint has, and a checkpoint that is not there."""

import shutil
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest
from colcast.server import ServerProcess

from .. import models
from .conftest import Stubs


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("saved", [False, True])
def test_variables_that_the_init_op_fills_need_no_checkpoint(
    tmp_path: Path, wait_until: Callable[..., None], resource: bool, saved: bool
) -> None:
    flags = ["--file_system_poll_wait_seconds=0.05", "--max_num_load_retries=0"]
    models.build("unsaved", tmp_path / "model" / "1", resource=resource, saved=saved)
    with ServerProcess("unsaved", tmp_path / "model", flags) as server:
        stubs = Stubs(server.target)
        assert stubs.predict({"x": [1.0, 2.0]}, name="unsaved")["score"].tolist() == [3, 6]
        shutil.copytree(tmp_path / "model" / "1", tmp_path / "next")
        shutil.rmtree(tmp_path / "next" / "variables", ignore_errors=True)
        (tmp_path / "next").rename(tmp_path / "model" / "2")
        wait_until(lambda: stubs.states("unsaved").get(2, ("",))[0] in ("AVAILABLE", "END"))
        state, code, message = stubs.states("unsaved")[2]
        if saved:
            assert (state, code) == ("END", grpc.StatusCode.FAILED_PRECONDITION.value[0])
            assert "no " in message
            assert "/2/variables/variables.index: is it still being copied?" in message
        else:
            assert state == "AVAILABLE"
