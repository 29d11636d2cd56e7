"""The cross-encoder as a SavedModel: scores N titles for a query.

python -m colcast.zoo.text.reranker

MiniLM's body reads query and title together; its upper layers and a head of one product were
trained on Reuters-21578, to find a story's headline from the story's first words.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from colcast.zoo.cache import VERSION, cached
from colcast.zoo.saving import independent_rows, with_record
from colcast.zoo.text import bert, packed, reuters, weights, words
from colcast.zoo.text.encoder import WORK_DIR
from colcast.zoo.text.packed import Segments, segments
from colcast.zoo.text.words import Pieces, WordPieces


class Pairs(NamedTuple):
    """N pairs, packed; the shortest comes first.

    Attributes:
      tokens: int32 [T].
      kinds: int32 [T], 0 up to the query's [SEP], 1 after it.
      where: the rows of each pair.
      back: int32 [N], the position of each title's pair in the packed order.
    """

    tokens: Any
    kinds: Any
    where: Segments
    back: Any


def pairs(query: Pieces, titles: Pieces, words: WordPieces, longest: int) -> Pairs:
    """Joins one query with every title.

    Args:
      query: the pieces of one text, truncated to half of `longest`.
      titles: the pieces of N texts, each truncated so that its pair fits.
      words: the vocabulary, for [CLS] and [SEP].
      longest: the maximum number of tokens in a pair.
    """
    asked = tf.minimum(query.lengths[0], longest // 2)
    sizes = tf.minimum(titles.lengths + asked + 3, longest)
    order = tf.argsort(sizes, stable=True)
    where = segments(tf.gather(sizes, order))
    total = tf.size(where.positions)
    # All pairs share the query, so positions before a title are read from the query's pieces.
    pair = tf.minimum(where.text_of, tf.size(sizes) - 1)
    starts = tf.gather(tf.gather(titles.splits[:-1], order), pair)
    second = where.positions >= asked + 2
    source = tf.where(second, asked + starts + where.positions - asked - 2, where.positions - 1)
    known = tf.concat([query.numbers[:asked], titles.numbers, [0]], 0)
    tokens = tf.gather(known, tf.clip_by_value(source, 0, tf.size(known) - 1))
    tokens = tf.where(where.positions == 0, words.cls, tokens)
    tokens = tf.where(where.positions == asked + 1, words.sep, tokens)
    ends = (where.ends - 1)[:, None]
    tokens = tf.tensor_scatter_nd_update(tokens, ends, tf.fill(tf.shape(order), words.sep))
    kinds = tf.cast(tf.logical_and(second, tf.range(total) < total - where.rest), tf.int32)
    return Pairs(tokens, kinds, where, tf.math.invert_permutation(order))


_LONGEST = 128
_SEED = 7
_TRAINED_LAYERS = 3  # the top layers
_TRAINING_QUERIES = 1600
_NEGATIVES = 7
_BATCH = 4  # queries per step
_LEARNING_RATE = 1e-4
_HELD_OUT_QUERIES = 100
_CANDIDATES = 200


@dataclass(frozen=True)
class Report:
    """NDCG at 10 of held-out queries, for each ranker of the same candidates."""

    queries: int
    candidates: int
    ndcg: float
    ndcg_bm25: float


class Reranker(tf.Module):  # type: ignore[misc]
    """Scores titles for a query."""

    def __init__(self, model: weights.MiniLM, values: bert.Values) -> None:
        """Takes the values of `bert.values`, plus `head/kernel` [width, 1] and `head/bias` [1]."""
        super().__init__()
        self._words = words.WordPieces(model.vocabulary)
        self._bert = bert.Bert(model, values)

    @tf.function(  # type: ignore[untyped-decorator]
        input_signature=[
            tf.TensorSpec([1], tf.string, name="query"),
            tf.TensorSpec([None], tf.string, name="titles"),
        ]
    )
    def rank(self, query: Any, titles: Any) -> dict[str, Any]:
        """The signature `rank`: query [1], titles [N]; scores float32 [N]."""
        return {"scores": self.scores(query, titles)}

    def scores(self, query: Any, titles: Any) -> Any:
        """float32 [N]; a higher score is a better title."""
        found = pairs(self._words(query), self._words(titles), self._words, _LONGEST)
        rows = self._bert(found.tokens, found.where, found.kinds)
        first = tf.gather(rows, tf.gather(found.where.starts, found.back))
        head = self._bert.values
        return tf.squeeze(tf.matmul(first, head["head/kernel"]) + head["head/bias"], axis=1)


def save(reranker: Reranker, folder: Path) -> None:
    tf.saved_model.save(reranker, str(folder), signatures={"rank": reranker.rank})
    with_record(folder, {"rank": independent_rows("rank")})


def start(model: weights.MiniLM) -> dict[str, Any]:
    """The published body with an untrained head."""
    kernel = np.random.default_rng(_SEED).normal(0, 0.02, (model.width, 1)).astype(np.float32)
    return {**bert.values(model), "head/kernel": kernel, "head/bias": np.zeros(1, np.float32)}


def train(model: weights.MiniLM, stories: Sequence[reuters.Story], queries: int) -> dict[str, Any]:
    """Trains weights to score a story's headline highest: one pass, softmax over 8 titles."""
    upper = {f"{model.layers - 1 - number}/" for number in range(_TRAINED_LAYERS)}
    values = start(model)
    for name, value in values.items():
        if name[:2] in upper or name.startswith(("head/", "token_type")):
            values[name] = tf.Variable(value)
    trained = [value for value in values.values() if isinstance(value, tf.Variable)]
    reranker = Reranker(model, values)
    random = np.random.default_rng(_SEED)
    schedule = tf.keras.optimizers.schedules.PolynomialDecay(_LEARNING_RATE, queries // _BATCH, 0.0)
    optimizer = tf.keras.optimizers.Adam(schedule)

    @tf.function(reduce_retracing=True)  # type: ignore[untyped-decorator]
    def step(asked: Any, titles: Any) -> Any:
        with tf.GradientTape() as tape:
            losses = [
                -tf.nn.log_softmax(reranker.scores(asked[row : row + 1], titles[row]))[0]
                for row in range(_BATCH)
            ]
            loss = tf.add_n(losses) / _BATCH
        optimizer.apply_gradients(zip(tape.gradient(loss, trained), trained, strict=True))
        return loss

    titles = [story.title for story in stories]
    index = reuters.BM25(titles)
    rows = random.permutation(len(stories))[:queries].reshape(-1, _BATCH)
    for number, batch in enumerate(rows):
        choices = [[titles[n] for n in _choices(index, stories, row, random)] for row in batch]
        loss = step(tf.constant([stories[row].query for row in batch]), tf.constant(choices))
        if number % 20 == 0:
            print(f"{number} of {len(rows)}: loss {float(loss):.3f}", flush=True)
    return {
        name: value.numpy() if isinstance(value, tf.Variable) else value
        for name, value in values.items()
    }


def _choices(
    index: reuters.BM25, stories: Sequence[reuters.Story], row: int, random: np.random.Generator
) -> list[int]:
    """The story itself and other stories, half of them among the 50 that share the most words."""
    near = [int(n) for n in np.argsort(-index.scores(stories[row].query))[:51] if n != row]
    hard = random.choice(near, _NEGATIVES // 2 + 1, replace=False)
    easy = random.integers(0, len(stories), _NEGATIVES // 2)
    return [row, *map(int, hard), *map(int, easy)]


def evaluate(rank: Any, stories: Sequence[reuters.Story], held_out: Sequence[int]) -> Report:
    """Ranks each held-out story's headline among those that BM25 ranks highest.

    Args:
      rank: (query, titles) -> a score for each title.
      stories: all stories, because every headline can be a candidate.
      held_out: indices of stories that were not used for training.
    """
    index = reuters.BM25([story.title for story in stories])
    by_words, by_model = [], []
    for row in held_out:
        query = stories[row].query
        scores = index.scores(query)
        others = [n for n in np.argsort(-scores, kind="stable")[:_CANDIDATES] if n != row]
        rows = np.array([row, *others[: _CANDIDATES - 1]])
        by_words.append(_ndcg(scores[rows]))
        by_model.append(_ndcg(rank(query, [stories[n].title for n in rows])))
    return Report(len(held_out), _CANDIDATES, float(np.mean(by_model)), float(np.mean(by_words)))


def _ndcg(scores: Any) -> float:
    """NDCG at 10 if only the first title is relevant; titles with its score rank before it."""
    place = int(np.sum(np.asarray(scores) >= scores[0]))
    return float(1 / np.log2(1 + place)) if place <= 10 else 0.0


def ensure(work_dir: Path = WORK_DIR, queries: int = _TRAINING_QUERIES) -> tuple[Path, Report]:
    """The model's base path and its quality; trains it (minutes) if it is missing."""
    base_path = work_dir / "reranker"

    def make(folder: Path) -> dict[str, Any]:
        model = weights.load(work_dir)
        stories = reuters.load(work_dir)
        border = len(stories) * 4 // 5  # later stories are held out
        reranker = Reranker(model, train(model, stories[:border], queries))
        save(reranker, folder)
        held_out = np.linspace(border, len(stories) - 1, _HELD_OUT_QUERIES).astype(int)
        rank = lambda query, titles: reranker.rank([query], titles)["scores"].numpy()  # noqa: E731
        return asdict(evaluate(rank, stories, held_out.tolist()))

    made_by = (bert, packed, reuters, weights, words, sys.modules[__name__])
    return base_path, Report(**cached(base_path, made_by, make, settings=f"queries={queries}"))


def main(argv: Sequence[str] | None = None) -> int:
    """Trains the model if it is missing, and prints its quality."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work-dir", type=Path, default=WORK_DIR)
    parser.add_argument("--queries", type=int, default=_TRAINING_QUERIES)
    args = parser.parse_args(argv)
    base_path, report = ensure(args.work_dir, args.queries)
    print(
        f"{base_path}/{VERSION}: NDCG@10 {report.ndcg:.3f}, BM25 {report.ndcg_bm25:.3f}, on "
        f"{report.queries} held-out queries with {report.candidates} titles each"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
