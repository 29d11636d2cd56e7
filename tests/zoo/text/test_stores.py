"""Texts and pairs that came before are not read again; their answers are what they were."""

import numpy as np
import pytest
from colcast.client import TextClient
from colcast.loadtest.metrics import state_counts
from colcast.server import ServerProcess
from colcast.zoo.text import reranker

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
    file = tmp_path_factory.mktemp("monitoring") / "monitoring.config"
    file.write_text("prometheus_config { enable: true }")
    return ["--rest_api_port=-1", f"--monitoring_config_file={file}"]


def counted(server, store):
    """Texts or pairs that were found, and that were computed."""
    counts = state_counts(f"http://{server.rest_target}/monitoring/prometheus/metrics")
    return [counts[store, f"states_{what}_total"] for what in ("found", "computed")]


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
@pytest.mark.parametrize("max_seq_len", [None, 8])
def test_vectors_equal_those_without_stores(base_path, flags, encode, pooling, max_seq_len):
    output = {"mean": "embeddings", "cls": "embeddings/cls", "max": "embeddings/max"}[pooling]
    with (
        ServerProcess("encoder", base_path, flags) as server,
        TextClient(server.target, "encoder") as client,
    ):
        for texts in (TEXTS, [*TEXTS[::-1], NEW], TEXTS[:2], [NEW]):
            vectors = client.encode(texts, pooling=pooling, max_seq_len=max_seq_len)
            np.testing.assert_allclose(
                vectors, encode(texts, max_seq_len or 256)[output], atol=2e-6
            )
        assert counted(server, "item") == [9, 7]
        client.encode(TEXTS, pooling=pooling, max_seq_len=9)  # other vectors
        assert counted(server, "item") == [9, 13]


def test_scores_equal_those_without_stores(minilm, flags, tmp_path):
    module = reranker.Reranker(minilm, reranker.start(minilm))
    reranker.save(module, tmp_path / "1")
    with (
        ServerProcess("reranker", tmp_path, [*flags, "--pair_bytes=1000000"]) as server,
        TextClient(server.target, "reranker") as client,
    ):
        for query, titles in [("cocoa", TEXTS), ("cocoa", [NEW, *TEXTS[::-1]]), ("oil", TEXTS)]:
            expected = module.rank([query], titles)["scores"].numpy()
            np.testing.assert_allclose(client.rank(query, titles).scores, expected, atol=1e-5)
        assert counted(server, "pair") == [6, 13]
