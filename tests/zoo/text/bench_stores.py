"""What is saved by texts that came before, and by a query that is sent once.

python -m tests.zoo.text.bench_stores [encode] [rank] [query]

encode, rank: texts or pairs of which about 35 % came before, drawn by Zipf, with the store and
without: texts per CPU second of the server. query: 12 words, 200 titles, the query once and with
every title: bytes and CPU of the server. The reranker's head is not trained, which costs the same.
"""

import argparse
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from colcast.client import TextClient
from colcast.client._encode import encode_predict_request
from colcast.client._text_batches import strings
from colcast.loadtest.process import ProcessMeter
from colcast.loadtest.turns import in_turn
from colcast.loadtest.ways import compare_ways, predicting
from colcast.server import ServerProcess
from colcast.zoo.text import encoder, late_interaction, reranker, weights

from .peer_environment import mixed_lengths

HITS = 0.35
ROUNDS = 8
WORKERS = "--num_workers=1"

Requests = Sequence[Any]


def zipf(draws: int) -> np.ndarray:
    """Draws by Zipf, numbered from 0, from so many that about 35 % had been drawn before."""
    drawn = np.zeros(draws, int)
    for population in (int(draws * 1.2**n) for n in range(-15, 60)):
        shares = 1 / np.arange(1, population + 1)
        drawn = np.random.default_rng(7).choice(population, draws, p=shares / shares.sum())
        if len(np.unique(drawn)) / draws >= 1 - HITS:
            break
    return np.unique(drawn, return_inverse=True)[1]


def with_and_without(
    base_path: Path, flags: tuple[str, str], requests: Requests, ask: Callable[[str, Any], int]
) -> None:
    """Sends the same requests, block by block in turn, to a server with a store and one without.

    Args:
      base_path: the model's.
      flags: that turn the store on, and off.
      requests: what `ask` is to send.
      ask: (address, request) -> how many texts or pairs it had.
    """
    with (
        ServerProcess("text", base_path, [WORKERS, flags[0]]) as on,
        ServerProcess("text", base_path, [WORKERS, flags[1]]) as off,
    ):
        servers = (on, off)
        for server in servers:
            for request in requests[-5:]:  # what is found afterwards is little
                ask(server.target, request)
        blocks = np.array_split(np.arange(len(requests) - 5), ROUNDS)

        def measure(server: ServerProcess, number: int) -> tuple[int, float]:
            meter = ProcessMeter(server.pid)
            before = meter.cpu_seconds()
            texts = sum(ask(server.target, requests[row]) for row in blocks[number])
            return texts, meter.cpu_seconds() - before

        rates = []
        for rounds in in_turn(servers, measure, ROUNDS):
            texts, cpu = np.sum(rounds, axis=0)
            rates.append(texts / cpu)
    print(
        f"  with the store {rates[0]:8.0f} per CPU second, without {rates[1]:8.0f}: "
        f"{rates[0] / rates[1]:.2f} times"
    )


def encode_bench() -> None:
    """Requests of 32 texts."""
    drawn = zipf(6400)
    texts = mixed_lengths(int(drawn.max()) + 1)
    print(f"encode: {1 - len(np.unique(drawn)) / len(drawn):.0%} of the texts came before")
    requests = [[texts[n] for n in block] for block in drawn.reshape(-1, 32)]

    def ask(address: str, request: list[str]) -> int:
        with TextClient(address, "text") as client:
            return len(client.encode(request))

    with_and_without(
        encoder.ensure(), ("--item_state_bytes=67108864", "--item_state_bytes=0"), requests, ask
    )


def rank_bench(base_path: Path) -> None:
    """Queries that come again with the same 20 titles."""
    drawn = zipf(240)
    texts = [" ".join(text.split()[:12]) for text in mixed_lengths(int(drawn.max() + 1) * 21)]
    print(f"rank: {1 - len(np.unique(drawn)) / len(drawn):.0%} of the pairs came before")

    def ask(address: str, query: int) -> int:
        with TextClient(address, "text") as client:
            asked, *titles = texts[21 * query : 21 * (query + 1)]
            return len(client.rank(asked, titles).scores)

    with_and_without(base_path, ("--pair_bytes=67108864", "--pair_bytes=0"), drawn.tolist(), ask)


def asked(base_path: Path, ways: dict[str, tuple[str, list[dict[str, Any]]]]) -> None:
    """Bytes and CPU of one query asked in some ways: name -> signature, inputs per request."""
    with ServerProcess("text", base_path, [WORKERS, "--item_state_bytes=0"]) as server:
        compared = [
            predicting(
                title,
                server,
                [encode_predict_request("text", signature, inputs) for inputs in requests],
            )
            for title, (signature, requests) in ways.items()
        ]
        for way, of_one in zip(compared, compare_ways(compared, ROUNDS), strict=True):
            cpu = np.median(of_one) * way.requests
            print(f"  {way.title:44} {way.bytes:8,} bytes {cpu:9.1f} ms of CPU")


def query_bench(reranker_path: Path) -> None:
    """12 words, 200 titles: late interaction and the cross-encoder."""
    texts = [" ".join(text.split()[:12]).encode() for text in mixed_lengths(201)]
    query, titles = texts[0], texts[1:]
    once = {"query": strings([query]), "title": strings(titles)}
    repeated = once | {"query": strings([query] * len(titles))}
    print("late interaction, 200 titles, nothing known:")
    asked(
        late_interaction.ensure(),
        {
            "the query once (columnar_late)": ("columnar_late", [once]),
            "with every title (columnar)": ("columnar", [repeated]),
        },
    )
    print("cross-encoder, 200 titles:")
    whole = {"query": strings([query]), "titles": strings(titles)}
    apart = [{"query": strings([query]), "titles": strings([title])} for title in titles]
    asked(
        reranker_path,
        {
            "the query once (rank)": ("rank", [whole]),
            "with every title, a request each": ("rank", apart),
        },
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    benches = ("encode", "rank", "query")
    parser.add_argument("what", nargs="*", choices=[*benches, []])
    what = parser.parse_args().what or benches
    model = weights.load(encoder.WORK_DIR)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        reranker.save(reranker.Reranker(model, reranker.start(model)), path / "1")
        if "encode" in what:
            encode_bench()
        if "rank" in what:
            rank_bench(path)
        if "query" in what:
            query_bench(path)


if __name__ == "__main__":
    main()
