"""Variables that no checkpoint has, and a checkpoint that is not there."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from colcast.server import ServerProcess

from .. import models
from .conftest import Stubs, config_flag

KINDS = {
    f"{'saved' if saved else 'unsaved'}_{'resource' if resource else 'reference'}": (
        resource,
        saved,
    )
    for resource in (False, True)
    for saved in (False, True)
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base path for each kind."""
    folder = tmp_path_factory.mktemp("variables")
    for name, (resource, saved) in KINDS.items():
        models.build("unsaved", folder / name / "1", resource=resource, saved=saved)
    return folder


@pytest.fixture(scope="module")
def stubs(folder: Path) -> Iterator[Stubs]:
    flags = ["--file_system_poll_wait_seconds=0.05", "--max_num_load_retries=0"]
    config = config_flag(folder / "models.config", {name: folder / name for name in KINDS})
    with ServerProcess(flags=[config, *flags]) as server:
        yield Stubs(server.target)


@pytest.mark.parametrize("kind", KINDS)
def test_variables_that_the_init_op_fills_need_no_checkpoint(
    folder: Path, stubs: Stubs, wait_until: Any, kind: str
) -> None:
    assert stubs.predict({"x": [1.0, 2.0]}, name=kind)["score"].tolist() == [3, 6]
    shutil.copytree(folder / kind / "1", folder / "next")
    shutil.rmtree(folder / "next" / "variables", ignore_errors=True)
    (folder / "next").rename(folder / kind / "2")
    wait_until(lambda: stubs.states(kind).get(2, ("",))[0] in ("AVAILABLE", "END"))
    state, code, message = stubs.states(kind)[2]
    if KINDS[kind][1]:
        assert (state, code) == ("END", grpc.StatusCode.FAILED_PRECONDITION.value[0])
        assert "no " in message
        assert "/2/variables/variables.index: is it still being copied?" in message
    else:
        assert state == "AVAILABLE"
