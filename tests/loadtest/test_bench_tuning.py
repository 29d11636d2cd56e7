"""Rows per slice, tuned: the server's settings, the table and the file with the figures."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import grpc
import numpy as np
import pytest
from colcast.client import RankingClient
from colcast.loadtest import bench_tuning
from colcast.loadtest.bench_tuning import Tuned, told
from colcast.loadtest.generated import generated
from colcast.loadtest.search import Sla
from colcast.loadtest.tuning import Load, Model
from colcast.server import ServerProcess

PREDICT = "/tensorflow.serving.PredictionService/Predict"


def line(static: float, largest_over_cores: float) -> Tuned:
    return Tuned("ncf", "low", 5.0, static, largest_over_cores, 64, 90.0, {32: 80.0, 64: 90.0})


def test_small_pieces_refuse_no_request_that_waits(exported: Path, tmp_path: Path):
    flags = ["--enable_batching", "--num_workers=1", bench_tuning._flag(8, tmp_path)]
    with ServerProcess("small", exported, flags) as server:
        with RankingClient(server.target, "small") as client:
            (data,) = generated(client.schema(), [500], seed=0)
            payload = client.encode(data.user, data.items, target="late")
        with grpc.insecure_channel(server.target) as channel:
            predict = channel.unary_unary(PREDICT)
            calls = [predict.future(payload, timeout=60) for _ in range(100)]
            codes = {call.code() for call in calls}
    assert codes == {grpc.StatusCode.OK}


@pytest.mark.parametrize(
    ("static", "over_cores", "gain"),
    [(45, 60, "2.00x, 1.50x"), (0, 60, "-, 1.50x"), (45, 0, "2.00x, 2.00x"), (0, 0, "-, -")],
)
def test_a_baseline_that_bears_no_load_has_no_ratio(static, over_cores, gain):
    *_, row = told([line(static, over_cores)])
    assert row.split("|")[-3].strip() == gain


@pytest.mark.parametrize(
    ("rates", "best", "tried"),
    [
        ({8: 50, 16: 80, 32: 100, 64: 90, 128: 90, 256: 1000}, 32, [8, 16, 32, 64, 128]),
        ({8: 50, 16: 40, 32: 60, 64: 61, 128: 20, 256: 10}, 64, [8, 16, 32, 64, 128, 256]),
    ],
    ids=["two steps down end it", "one may be noise"],
)
def test_pieces_grow_until_the_rate_falls(rates, best, tried, tmp_path: Path, monkeypatch):
    (curve,) = climbed(lambda rows: [rates[rows]], tmp_path, monkeypatch)
    assert curve == {rows: rates[rows] for rows in tried}
    assert bench_tuning._best(curve) == best


def test_pieces_grow_until_the_rates_of_all_targets_have_fallen(tmp_path: Path, monkeypatch):
    strict, lax = climbed(lambda rows: [1000 / rows, min(rows, 64)], tmp_path, monkeypatch)
    assert list(strict) == list(lax) == [8, 16, 32, 64, 128, 256, 512, 1024]
    strict, lax = climbed(lambda rows: [1000 / rows, 500 / rows], tmp_path, monkeypatch)
    assert list(strict) == list(lax) == [8, 16, 32]


def climbed(
    rates: Callable[[int], list[float]], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> list[dict[int, float]]:
    def highest_rates(_model, load, flags) -> list[float]:
        assert len(load.slas) == len(rates(8))
        return rates(int(re.search(r"rows_(\d+)", flags[0])[1]))

    monkeypatch.setattr(bench_tuning, "highest_rates", highest_rates)
    load = Load(requests=(), slas=[Sla(95, 10.0)] * len(rates(8)))
    return bench_tuning._climbed(Model("any", folder), load, folder)


def test_figures_are_kept_where_a_later_model_fails(tmp_path: Path, monkeypatch):
    def measured(name: str, *_) -> list[Tuned]:
        if name == "broken":
            raise RuntimeError(name)
        return [line(45, 60)]

    monkeypatch.setattr(bench_tuning, "measured", measured)
    options = ["--models", "ncf,broken", "--targets", "low", "--output", str(tmp_path / "new")]
    with pytest.raises(RuntimeError, match="broken"):
        bench_tuning.main(options)
    (kept,) = json.loads((tmp_path / "new" / "tuning.json").read_text())
    assert np.isclose(kept["tuned"], 90)
    assert kept["curve"] == {"32": 80.0, "64": 90.0}
    assert (tmp_path / "new" / "tuning_ncf.svg").read_text().startswith("<svg")
