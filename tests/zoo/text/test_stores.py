"""Texts that came before are not read again; their answers are what they were."""

import numpy as np
import pytest
from colcast.client import TextClient
from colcast.loadtest.measure.meters import publishing
from colcast.server import ServerProcess

from ...server.metrics_page import Metrics

TEXTS = [
    "Cocoa prices fell.",
    "",
    b"broken \xff\xfe bytes\x00",
    "  spaces,\ttabs and a \u0007 bell ",
    "The ministers agreed to cut output " * 20,
    "\U0001f36b \u00fcn\u00efc\u00f6d\u00e9 \u6771\u4eac",
]
NEW = "Oil rose."


@pytest.fixture(scope="module")
def flags(tmp_path_factory):
    return publishing(tmp_path_factory.mktemp("monitoring"))


@pytest.fixture(scope="module")
def server(base_path, flags):
    with ServerProcess("encoder", base_path, flags) as process:
        yield process


def counted(server, store):
    """Texts that were found, and that were computed."""
    samples = [s for s in Metrics(server).samples if s.labels.get("store") == store]
    names = [f":colcast:states_{what}_total" for what in ("found", "computed")]
    return [sum(sample.value for sample in samples if sample.name == name) for name in names]


POOLINGS = {"mean": "embeddings", "cls": "embeddings/cls", "max": "embeddings/max"}


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("max_seq_len", [None, 8])
def test_vectors_equal_those_without_stores(server, encode, pooling, max_seq_len):
    spaces = [*POOLINGS].index(pooling) + (3 if max_seq_len else 0)  # texts of this case's own
    *texts, new = [spaces * (b" " if isinstance(t, bytes) else " ") + t for t in (*TEXTS, NEW)]
    before = np.array(counted(server, "item"))
    with TextClient(server.target, "encoder") as client:
        for some in (texts, [*texts[::-1], new], texts[:2], [new]):
            vectors = client.encode(some, pooling=pooling, max_seq_len=max_seq_len)
            expected = encode(some, max_seq_len or 256)[POOLINGS[pooling]]
            np.testing.assert_allclose(vectors, expected, atol=2e-6)
        assert (counted(server, "item") - before).tolist() == [9, 7]
        client.encode(texts, pooling=pooling, max_seq_len=9)  # other vectors
        assert (counted(server, "item") - before).tolist() == [9, 13]
