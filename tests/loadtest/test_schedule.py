"""Schedules and sizes are what was asked for, and the same for a seed."""

from pathlib import Path

import numpy as np
import pytest
from colcast.loadtest.measure.open_loop import poisson
from colcast.loadtest.send.sizes import draw, parse_sizes
from scipy import stats


def gaps(seed: int) -> np.ndarray:
    due = poisson(rate=250, seconds=41, distinct=7, seed=seed).due
    return np.diff(due[:10_001])


@pytest.mark.parametrize("seed", range(5))
def test_gaps_are_exponential(seed: int):
    found = gaps(seed)
    assert len(found) == 10_000
    assert found.std() / found.mean() == pytest.approx(1, abs=0.05)
    assert stats.kstest(found, stats.expon(scale=1 / 250).cdf).pvalue > 0.01


def test_gaps_rounded_to_milliseconds_would_fail_that_test():
    """The test can tell: the usual mistake is a Poisson number of whole milliseconds."""
    wrong = np.random.default_rng(1).poisson(4, 10_000) / 1000
    assert wrong.std() / wrong.mean() < 0.95
    assert stats.kstest(wrong, stats.expon(scale=1 / 250).cdf).pvalue < 1e-9


def test_a_seed_repeats_the_schedule():
    one, two, other = (poisson(100, 3, 5, seed) for seed in (1, 1, 2))
    assert (one.due == two.due).all()
    assert (one.request == two.request).all()
    assert len(one.due) != len(other.due) or (one.due != other.due).any()


def test_the_rate_is_met_and_nothing_is_due_after_the_end():
    schedule = poisson(rate=1000, seconds=20, distinct=3, seed=4)
    assert len(schedule.due) == pytest.approx(20_000, rel=0.03)
    assert schedule.seconds < 20
    assert (np.diff(schedule.due) >= 0).all()


def test_every_request_is_taken_once_before_any_is_taken_again():
    request = poisson(rate=100, seconds=3, distinct=8, seed=1).request
    rounds = request[: len(request) // 8 * 8].reshape(-1, 8)
    assert (np.sort(rounds, axis=1) == np.arange(8)).all()


@pytest.mark.parametrize("wrong", [{"rate": 0}, {"seconds": -1}, {"distinct": 0}])
def test_a_schedule_of_nothing_is_refused(wrong: dict[str, int]):
    asked = {"rate": 1, "seconds": 1, "distinct": 1, "seed": 1} | wrong
    with pytest.raises(ValueError, match="have to be positive"):
        poisson(**asked)


def test_the_mlperf_mix_is_the_published_one():
    sizes = draw(parse_sizes("mlperf"), 20, seed=0)
    values, counts = np.unique(sizes, return_counts=True)
    assert dict(zip(values.tolist(), counts.tolist(), strict=True)) == {
        100: 2, 200: 12, 300: 2, 400: 1, 500: 1, 600: 1, 700: 1,
    }  # fmt: skip


def test_pareto_sizes_have_the_tail_asked_for():
    sizes = draw(parse_sizes("pareto:20:1:1000"), 1000, seed=3)
    assert sizes.min() == 20
    assert sizes.max() == 1000
    for size in (40, 100, 400):
        assert (sizes > size).mean() == pytest.approx(20 / (size + 0.5), abs=0.002)


def test_lognormal_sizes_meet_the_quantiles_asked_for():
    sizes = draw(parse_sizes("lognormal:200:0.8"), 1000, seed=3)
    for q in (0.05, 0.25, 0.5, 0.75, 0.95):
        wanted = 200 * np.exp(0.8 * stats.norm.ppf(q))
        assert np.quantile(sizes, q) == pytest.approx(wanted, rel=0.02)


def test_sizes_are_in_random_order_and_repeat_with_the_seed():
    sizes = parse_sizes("lognormal:100:1")
    assert draw(sizes, 50, 1).tolist() == draw(sizes, 50, 1).tolist()
    assert draw(sizes, 50, 1).tolist() != draw(sizes, 50, 2).tolist()
    assert draw(sizes, 50, 1).tolist() != sorted(draw(sizes, 50, 1).tolist())


def test_sizes_come_from_a_list_or_a_file(tmp_path: Path):
    (tmp_path / "sizes.txt").write_text("5\n5\n9\n")
    assert sorted(draw(parse_sizes("20,100,500"), 6, 0).tolist()) == [20, 20, 100, 100, 500, 500]
    assert sorted(draw(parse_sizes(f"file:{tmp_path}/sizes.txt"), 3, 0).tolist()) == [5, 5, 9]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("many", "'many'"),
        ("0", "0 candidates are none"),
        ("10,-2", "-2 candidates"),
        ("20,99999999", "99,999,999 candidates are more than 1,048,576"),
        ("pareto:20:1", "unpack"),
        ("pareto:20:0:100", "alpha above 0"),
        ("pareto:20:1:10", "smallest <= largest"),
        ("lognormal:5", "unpack"),
        ("lognormal:0:1", "at least 1"),
        ("file:/does/not/exist", "No such file"),
        ("", "invalid literal"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(text: str, reason: str):
    with pytest.raises(ValueError, match=f"sizes '{text}'.*{reason}.*wanted is a number"):
        parse_sizes(text)
