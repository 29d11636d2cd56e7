"""Feature names that a signature cannot carry."""

import pytest
import tensorflow as tf
from colcast.export import ExportError, export_saved_model

from ..models.saving import save_parser


def test_name_that_is_not_utf_8(tmp_path):
    module = tf.Module()
    module.weight = tf.Variable(2.0)
    spec = {b"caf\xe9": tf.io.FixedLenFeature([], tf.float32)}
    save_parser(tmp_path / "model", module, spec, lambda f: f[b"caf\xe9"] * module.weight)
    with pytest.raises(ExportError, match=r"caf.xe9.*is not valid UTF-8"):
        export_saved_model(tmp_path / "model", tmp_path / "out")
