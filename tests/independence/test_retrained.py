"""An export whose variables/ are a retrained model's answers as that model, after a reload, too."""

import json
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from colcast.server import ServerProcess

from ..models import RANKING
from ..waiting import wait_until
from .cases import cases_of
from .conftest import ANSWERS, SHORT_SIZES
from .exported import Exported
from .hammer import difference, hammer
from .servers import serve

# Their products are split, of some at rows that interleave or behind a normalisation.
SPLIT = ("interleaved", "plain_functional", "pointwise", "masked_attention", "sparse_lookups")
REQUESTS = 96


@pytest.mark.parametrize("name", RANKING if ANSWERS else SPLIT)
def test_retrained_variables_score_as_the_retrained_model(
    name: str, exported: Callable[[str], Exported], tmp_path: Path
) -> None:
    before = exported(name)
    after = before.retrained(tmp_path)
    old, new = (cases_of(each, SHORT_SIZES) for each in (before, after))
    assert max(difference(a.expected, b.expected) for a, b in zip(old, new, strict=True)) > 0.01
    server = serve([after], "default", tmp_path / "config", "--file_system_poll_wait_seconds=0.05")
    with server:
        for cases in (old, new):
            found = hammer(server, name, cases, REQUESTS)
            assert {kind: t.shown for kind, t in found.items() if t.wrong} == {}
            if cases is old:
                (tmp_path / "2").rename(after.base_path / "2")
                wait_until(lambda: _available(server, name) == ["2"])


def _available(server: ServerProcess, name: str) -> list[str]:
    with urllib.request.urlopen(f"http://{server.rest_target}/v1/models/{name}") as answer:
        versions = json.load(answer)["model_version_status"]
    return [each["version"] for each in versions if each["state"] == "AVAILABLE"]
