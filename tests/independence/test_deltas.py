"""While deltas change tables, each answer comes from one generation, never an older one.

The expected answers are TensorFlow's, after the same rows are assigned to the variable.
"""

import copy
import random
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pandas as pd
import pytest
from colcast.client import decode_predict_response
from colcast.items import build_row_delta, build_table
from colcast.items._variables import variables_of
from colcast.server import ServerProcess

from ..server.inference_client import InferenceClient
from ..server.metrics_page import status
from ..waiting import wait_until
from .cases import Case, cases_of, items_of
from .conftest import ANSWERS
from .exported import Exported, Outputs, difference
from .hammer import METHOD, TOLERANCE, VARIANTS, Tally, _rest, serve

DELTAS = 60 if ANSWERS else 12
AT_ONCE = 3  # deltas that are published between two polls of the server
CLIENTS = 12
SIZES = (1, 2, 5, 20, 150, 700)
KEY = "item_key"
MODELS = ("plain_functional", "masked_attention")  # of tensors, of tf.Examples


@dataclass
class Delta:
    """New values for rows of one table."""

    table: str
    ids: Any
    vectors: Any


def _deltas(server: ServerProcess, folder: Path) -> list[Delta]:
    """Deltas that alternate between the mapped tables, so a mix of generations matches none."""
    draw = np.random.default_rng(3)
    mapped = [t["name"] for t in _tables(server)["tables"] if not t["in_memory_because"]]
    tables = [one for name, one in variables_of(folder).items() if "embeddings" in name]
    tables = [one for one in tables if one.name in mapped]
    assert len(tables) == 2
    made = []
    for number in range(DELTAS):
        table = tables[number % len(tables)]
        rows, width = table.shape
        ids = np.sort(draw.choice(rows, draw.integers(rows // 2, rows), replace=False))
        made.append(Delta(table.name, ids, np.float32(draw.normal(size=(len(ids), width)))))
    return made


@dataclass
class Client:
    """Sends requests one after another; finds the generation of each answer."""

    server: ServerProcess
    model: str
    generations: Sequence[Sequence[Case]]
    newest: int = 0
    wrong: list[str] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)

    def run(self, seed: int, ended: threading.Event, final: bool = False) -> "Client":
        draw = random.Random(seed)
        order = list(range(len(self.generations[0])))
        infer = InferenceClient(self.server)
        with grpc.insecure_channel(
            self.server.target, [("grpc.use_local_subchannel_pool", 1)]
        ) as c:
            predict = c.unary_unary(METHOD)
            while order and not ended.is_set():
                number = order.pop() if final else draw.choice(order)
                case = self.generations[0][number]
                kinds = [case.format]
                if case.format.startswith(("columnar", "late")):
                    kinds.append(f"ModelInfer, {case.format}")
                for kind in kinds:
                    self._check(kind, number, self._ask(kind, case, predict, infer))
        return self

    def _ask(self, kind: str, case: Case, predict: Any, infer: InferenceClient) -> Outputs:
        if kind == "rest":
            kept = _Kept()
            _rest(self.server, self.model, case, kept)
            assert not kept.refused, kept.refused
            return kept.outputs
        if kind.startswith("ModelInfer"):
            result = infer.infer(case.inputs, case.signature, self.model)
            return {name: result.as_numpy(name) for name in case.expected}
        return decode_predict_response(predict(case.message, timeout=120)).outputs

    def _check(self, kind: str, number: int, given: Outputs) -> None:
        self.answers[kind] += 1
        fits = [
            generation
            for generation, cases in enumerate(self.generations)
            if difference(cases[number].expected, given) <= TOLERANCE
        ]
        if not fits:
            self.wrong.append(f"{kind}: an answer of no generation, after {self.newest}")
        elif fits[-1] < self.newest:
            self.wrong.append(f"{kind}: generation {fits} after {self.newest}")
        else:
            self.newest = max(self.newest, fits[0])


class _Kept(Tally):
    """A tally that keeps the last answer."""

    outputs: Outputs

    def add(self, case: Case, given: Outputs) -> None:
        self.outputs = given


def _tables(server: ServerProcess) -> dict[str, Any]:
    found: dict[str, Any] = status(server)["models"][0]["versions"][0]["tables"]
    return found


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("name", "variant"),
    [
        *(
            product(MODELS, VARIANTS)
            if ANSWERS
            else zip(MODELS, ("one worker", "split"), strict=True)
        )
    ],
)
def test_every_answer_is_of_one_generation_and_none_is_followed_by_an_older_one(
    name: str, variant: str, exported: Callable[[str], Exported], tmp_path: Path
) -> None:
    model = copy.copy(exported(name))
    model.base_path = tmp_path / name
    shutil.copytree(exported(name).base_path / "1", model.base_path / "1")
    build_table(model.base_path, _items(model), key=KEY, output=tmp_path / "items")
    original = model.original()
    generations = [cases_of(model, SIZES, original=original, item_key=KEY)]
    flags = [f"--item_table={name}:{KEY}:{tmp_path}/items"]
    ended = threading.Event()
    with serve([model], variant, tmp_path / "config", *flags) as server:
        deltas = _deltas(server, model.base_path / "1")
        for delta in deltas:
            original.assign(delta.table, delta.ids, delta.vectors)
            generations.append(cases_of(model, SIZES, original=original, item_key=KEY))
        clients = [Client(server, name, generations) for _ in range(CLIENTS)]
        with ThreadPoolExecutor(CLIENTS) as pool:
            running = [pool.submit(c.run, i, ended) for i, c in enumerate(clients)]
            try:
                _publish(server, model.base_path, deltas)
            finally:
                ended.set()
            for each in running:
                each.result()
        last = Client(server, name, generations, newest=DELTAS)
        for seed in range(2):  # the second round finds the states of the first
            last.run(seed, threading.Event(), final=True)
    found = [wrong for client in [*clients, last] for wrong in client.wrong]
    total = sum((client.answers for client in clients), Counter[str]())
    print(f"{name}, {variant}: {total.total()} answers, {dict(total)}")
    assert not found, "\n".join([f"{len(found)} of {total.total()}", *found[:10]])
    assert max(client.newest for client in clients) > 1


def _items(model: Exported) -> pd.DataFrame:
    features = model.record["features"].items()
    scalars = {n for n, f in features if f["kind"] == "fixed_len" and not f["shape"]}
    rows = [
        {name: values[0] if name in scalars else values for name, values in row.items()}
        for row in items_of(model)
    ]
    return pd.DataFrame(rows).assign(**{KEY: range(len(rows))})


def _publish(server: ServerProcess, base_path: Path, deltas: Sequence[Delta]) -> None:
    for number, delta in enumerate(deltas, 1):
        frame = pd.DataFrame({"id": delta.ids, "vector": list(delta.vectors)})
        build_row_delta(base_path, frame, table=delta.table)
        if number % AT_ONCE == 0 or number == len(deltas):
            wait_until(lambda n=number: _tables(server)["deltas"] == n)
