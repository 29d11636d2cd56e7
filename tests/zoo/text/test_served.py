"""Text models on the native server, also through TextClient."""

import asyncio

import numpy as np
import pytest
import tensorflow as tf
from colcast.client import AsyncTextClient, InputError, ServerError, TextClient
from colcast.loadtest.measure.meters import publishing
from colcast.server import ServerProcess
from hypothesis import given, settings
from hypothesis import strategies as st

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
def server(tmp_path_factory, base_path):
    flags = publishing(tmp_path_factory.mktemp("monitoring"))
    with ServerProcess("encoder", base_path, flags) as process:
        assert "warmed up with 2 requests" in process.log()
        yield process


def counted(server, store):
    """The numbers of hits and misses of texts so far."""
    samples = [s for s in Metrics(server).samples if s.labels.get("store") == store]
    names = [f":colcast:states_{what}_total" for what in ("found", "computed")]
    return [sum(sample.value for sample in samples if sample.name == name) for name in names]


POOLINGS = {"mean": "embeddings", "cls": "embeddings/cls", "max": "embeddings/max"}


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("max_seq_len", [None, 8])
def test_vectors_equal_those_without_stores(server, encode, pooling, max_seq_len):
    spaces = [*POOLINGS].index(pooling) + (3 if max_seq_len else 0)  # unique per case
    *texts, new = [spaces * (b" " if isinstance(t, bytes) else " ") + t for t in (*TEXTS, NEW)]
    before = np.array(counted(server, "item"))
    with TextClient(server.target, "encoder", timeout_seconds=300) as client:
        for some in (texts, [*texts[::-1], new], texts[:2], [new]):
            vectors = client.encode(some, pooling=pooling, max_seq_len=max_seq_len)
            expected = encode(some, max_seq_len or 256)[POOLINGS[pooling]]
            np.testing.assert_allclose(vectors, expected, atol=2e-6)
        assert (counted(server, "item") - before).tolist() == [9, 7]
        client.encode(texts, pooling=pooling, max_seq_len=9)  # its vectors are not cached
        assert (counted(server, "item") - before).tolist() == [9, 13]


class Sizes(tf.Module):
    """An encoder whose vectors are a text's bytes and the number of texts in the run."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="texts")])
    def encode(self, texts):
        sizes = tf.cast(tf.strings.length(texts), tf.float32)
        together = tf.fill(tf.shape(sizes), tf.cast(tf.size(texts), tf.float32))
        return {"embeddings": tf.stack([sizes, together], axis=1)}


@pytest.fixture(scope="module")
def sizes_address(tmp_path_factory):
    base, module = tmp_path_factory.mktemp("sizes"), Sizes()
    tf.saved_model.save(module, str(base / "1"), signatures={"encode": module.encode})
    with ServerProcess("sizes", base) as server:
        yield server.target


@pytest.fixture
def client(server):
    with TextClient(server.target, "encoder", timeout_seconds=300) as client:
        yield client


@pytest.fixture
def sizes(sizes_address):
    with TextClient(sizes_address, "sizes", batch_tokens=40) as client:
        yield client


@settings(max_examples=30, deadline=None)
@given(texts=st.lists(st.text(alphabet=st.characters(codec="utf-8"), max_size=100), max_size=60))
def test_any_texts_come_back_in_order(sizes_address, texts):
    with TextClient(
        sizes_address, "sizes", timeout_seconds=300, batch_tokens=64, in_flight=3
    ) as client:
        vectors = client.encode(texts)
    assert vectors.shape == (len(texts), 2)
    assert vectors[:, 0].tolist() == [len(text.encode()) for text in texts]


def test_a_request_keeps_within_the_budget_of_tokens(sizes):
    # Each text has 10 tokens, plus [CLS] and [SEP].
    vectors = sizes.encode([f"{number:040}" for number in range(50)])
    assert vectors[:, 1].max() == 3


def test_a_repeated_text_is_sent_once(sizes):
    assert sizes.encode(["again"] * 1000)[:, 1].tolist() == [1] * 1000


def test_no_texts_have_no_vectors_of_the_models_width(client):
    assert client.encode([]).shape == (0, 384)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: c.encode("one text"), "texts must be a list of texts, got 'one text'"),
        (lambda c: c.encode(None), "texts must be a list of texts, got None"),
        (lambda c: c.encode(["", None]), "text 1: expected str or UTF-8 bytes, got None"),
        (lambda c: c.encode(["\ud800"]), "text 0: .*surrogates not allowed"),
        (lambda c: c.encode([""], max_seq_len=1), "max_seq_len must be 2 to 512, got 1"),
        (lambda c: c.encode([""], pooling="sum"), "pooling must be one of mean, cls, max, got 's"),
        (lambda c: c.rank("", "one title"), "titles must be a list of texts, got 'one title'"),
        (lambda _: TextClient("", "", in_flight=0), "in_flight must be at least 1, got 0"),
    ],
)
def test_a_call_that_is_no_list_of_texts_is_refused_before_it_is_sent(call, message):
    with TextClient("127.0.0.1:1", "nobody") as client, pytest.raises(InputError, match=message):
        call(client)


def test_the_first_error_ends_a_call(sizes_address):
    with (
        TextClient(sizes_address, "absent", batch_tokens=1) as client,
        pytest.raises(ServerError, match="absent"),
    ):
        client.encode([str(number) for number in range(1000)])


async def test_the_asyncio_client_answers_the_same(sizes_address):
    texts = [str(number) for number in range(500)]
    async with AsyncTextClient(sizes_address, "sizes", batch_tokens=64) as client:
        whole, empty = await asyncio.gather(client.encode(texts), client.encode([]))
        with pytest.raises(InputError, match="text 0"):
            await client.encode([1])
    assert whole[:, 0].tolist() == [len(text) for text in texts]
    assert empty.shape == (0, 2)
    async with AsyncTextClient(sizes_address, "absent", batch_tokens=1) as client:
        with pytest.raises(ServerError, match="absent"):
            await client.encode(texts)
