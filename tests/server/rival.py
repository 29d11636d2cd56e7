"""Runs a graph on one thread for bench_rivals.py, in an environment of its own.

python rival.py tensorflow|onnx MODEL COLUMNS.npz: for every number on standard input it runs
the graph so often and prints a line. MODEL is a version's directory, or a file that tf2onnx made of
it; columns are those of the signature `columnar`.
"""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np


def tensorflow_run(model: str, columns: dict[str, Any]) -> Callable[[], object]:
    """A session as the server runs it, asked by TensorFlow's fastest way for Python."""
    import tensorflow as tf

    config = tf.compat.v1.ConfigProto(
        intra_op_parallelism_threads=1, inter_op_parallelism_threads=-1
    )
    session = tf.compat.v1.Session(graph=tf.Graph(), config=config)
    with session.graph.as_default():
        meta = tf.compat.v1.saved_model.load(session, ["serve"], model)
    signature = meta.signature_def["columnar"]
    outputs = [info.name for info in signature.outputs.values()]
    run = session.make_callable(outputs, [signature.inputs[name].name for name in columns])
    return lambda: run(*columns.values())


def onnx_run(model: str, columns: dict[str, Any]) -> Callable[[], object]:
    """ONNX Runtime's CPU provider."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_inputs()]
    feeds = {name: columns[name.split(":")[0]] for name in names}
    return lambda: session.run(None, feeds)


def main() -> None:
    """Answers until standard input ends."""
    kind, model, file = sys.argv[1:]
    with np.load(file) as columns:
        run = {"tensorflow": tensorflow_run, "onnx": onnx_run}[kind](model, dict(columns))
    for line in sys.stdin:
        for _ in range(int(line)):
            run()
        print("done", flush=True)


if __name__ == "__main__":
    main()
