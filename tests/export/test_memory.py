"""Variables are copied as files: converting a model takes the memory of its graph."""

import subprocess
import sys

import tensorflow as tf
from colcast.export.convert._folder import variables_bytes

from ..models.saving import save_parser

CONVERT = """
import resource, sys
import tensorflow as tf
from colcast.export import export_saved_model
with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    session.run(tf.constant(1))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
export_saved_model(sys.argv[1], sys.argv[2], most_parity_bytes=1 << 20)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


def test_variables_are_never_loaded(tmp_path):
    module = tf.Module()
    module.table = tf.Variable(tf.zeros([1 << 20, 64]))
    spec = {"id": tf.io.FixedLenFeature([], tf.int64)}
    save_parser(tmp_path / "model", module, spec, lambda f: tf.gather(module.table, f["id"]))
    megabytes = variables_bytes(tmp_path / "model") >> 20
    assert megabytes >= 256
    command = [sys.executable, "-c", CONVERT, str(tmp_path / "model"), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[-1]) < megabytes / 4
