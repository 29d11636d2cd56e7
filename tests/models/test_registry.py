"""The registry's statements about models that are served without an export."""

from fnmatch import fnmatch
from pathlib import Path

import pytest
from tensorflow.core.protobuf import saved_model_pb2

from . import SERVED, build


@pytest.mark.parametrize("name", SERVED)
def test_a_model_has_the_columns_and_domains_of_the_registry(name: str, tmp_path: Path) -> None:
    build(name, tmp_path / "1")
    saved = saved_model_pb2.SavedModel.FromString((tmp_path / "1/saved_model.pb").read_bytes())
    model, inputs = SERVED[name], set()
    for signature in saved.meta_graphs[0].signature_def.values():
        inputs.update(signature.inputs)
    assert {one for one in inputs if "_state/" not in one and "row_to_" not in one} == {
        *model.columns
    }
    if "examples" not in model.columns:
        for patterns in model.domains.values():
            assert all(any(fnmatch(one, it) for one in inputs) for it in patterns)
