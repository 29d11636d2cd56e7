"""MultiInference on signatures that share an input: the graph runs once for all tasks."""

from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from ...models.saving import save_graph

v1 = tf.compat.v1

MODEL = "counter"
REGRESS = "tensorflow/serving/regress"


def save_counter(directory: Path) -> None:
    """Signatures that each answer with how often the graph ran; three of them share an input."""
    with v1.Graph().as_default(), v1.Session() as session:
        runs = v1.get_variable("runs", initializer=0.0, use_resource=True)
        signatures = {}
        for names in (("first", "second", "third"), ("alone",)):
            examples = v1.placeholder(tf.string, [None])
            with v1.control_dependencies([runs.assign_add(1.0)]):
                count = tf.fill(tf.shape(examples), runs.read_value())
            for place, name in enumerate(names):
                signatures[name] = v1.saved_model.build_signature_def(
                    {"inputs": v1.saved_model.build_tensor_info(examples)},
                    {"outputs": v1.saved_model.build_tensor_info(count + 100.0 * place)},
                    REGRESS,
                )
        session.run(v1.global_variables_initializer())
        save_graph(directory, session, signatures)


@pytest.fixture(scope="module")
def counter(tmp_path_factory: pytest.TempPathFactory, serve: Any, connect_judge: type) -> object:
    base_path = tmp_path_factory.mktemp(MODEL)
    save_counter(base_path / "1")
    return connect_judge(serve(base_path, name=MODEL).server.target)


def runs_seen(judge, given, *names) -> list[list[float]]:
    """The values of each task, without its place's hundreds."""
    response = judge.infer(given, *((REGRESS, name, MODEL) for name in names))
    assert [one.model_spec.signature_name for one in response.results] == list(names)
    return [[one.value for one in task.regression_result.regressions] for task in response.results]


def test_tasks_that_share_an_input_are_one_run(counter, make_input, make_example):
    given = make_input([make_example(x=1.0), make_example(x=2.0)])
    ((first, _),) = runs_seen(counter, given, "first")
    assert runs_seen(counter, given, "third", "first") == [[first + 201] * 2, [first + 1] * 2]
    assert runs_seen(counter, given, "second", "third", "first") == [
        [first + 102] * 2,
        [first + 202] * 2,
        [first + 2] * 2,
    ]


def test_tasks_with_inputs_of_their_own_are_a_run_each(counter, make_input, make_example):
    given = make_input([make_example(x=1.0)])
    ((before,),) = runs_seen(counter, given, "alone")
    assert sorted(runs_seen(counter, given, "first", "alone")) == [[before + 1], [before + 2]]
