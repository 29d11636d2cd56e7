"""What the export records of each model's independence is what the registry says."""

import pytest

from ..models import Expected
from .conftest import Models

pytestmark = pytest.mark.timeout(900)
STAGES = {f"columnar_{stage}" for stage in ("user", "item", "pair")}


def test_independent_models_keep_their_stages(group: Models) -> None:
    for name, exported in group.items():
        if exported.model.expected is not Expected.INDEPENDENT:
            continue
        independence = exported.record["independence"]
        assert independence.keys() >= STAGES, name
        for signature, found in independence.items():
            own = exported.model.own_length if signature == "columnar_user" else ()
            expected = {"rows": True, "why_not": "", "own_length": list(own)}
            assert found == expected, (name, signature)
        assert exported.record["parts"]["users_per_run"] == exported.model.users_per_run, name


def test_interacting_models_are_found(group: Models) -> None:
    for name, exported in group.items():
        if exported.model.expected is Expected.INTERACTING:
            for signature in ("columnar", "columnar_late"):
                found = exported.record["independence"][signature]
                assert not found["rows"], (name, signature)
                assert found["why_not"], (name, signature)


def test_models_that_read_padding_name_the_list(group: Models) -> None:
    for name, exported in group.items():
        if exported.model.expected is Expected.LENGTH:
            found = exported.record["independence"]["columnar"]
            assert not found["rows"] or found["own_length"], name
