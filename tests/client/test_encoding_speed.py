"""The ratios that the benchmark prints hold."""

import pytest

from .bench_encoding import measure


@pytest.fixture(scope="module")
def milliseconds() -> dict[str, float]:
    """The best of three rounds of every way."""
    return measure(rounds=3)


@pytest.mark.parametrize(
    ("way", "baseline", "times_faster"),
    [
        ("arrays, encode_predict_request", "tf.Examples with protobuf", 15),
        ("arrays, checked", "tf.Examples with protobuf", 15),
        ("rows of dicts, checked", "tf.Examples with protobuf", 3),
        ("arrays, encode_predict_request", "tf.make_tensor_proto a column", 5),
    ],
)
def test_times_faster(
    milliseconds: dict[str, float], way: str, baseline: str, times_faster: float
) -> None:
    assert milliseconds[baseline] / milliseconds[way] >= times_faster
