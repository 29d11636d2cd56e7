"""The cross-encoder as a SavedModel: scores N titles for a query.

python -m colcast.zoo.text.reranker --pairs pairs.tsv

MiniLM's body reads query and title together; its upper layers and a head of one product are
trained on your pairs of a query and the title that it should find.
"""

import argparse
import hashlib
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from colcast.zoo.cache import VERSION, cached
from colcast.zoo.saving import independent_rows, with_record
from colcast.zoo.text import bert, packed, weights, words
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
_NEGATIVES = 7
_BATCH = 4  # queries per step
_LEARNING_RATE = 1e-4
_MOST_HELD_OUT, _CANDIDATES = 100, 200

Pair = tuple[str, str]  # a query, and the title that it should find


@dataclass(frozen=True)
class Report:
    """NDCG at 10 of `queries` held-out queries, with `candidates` titles each."""

    queries: int
    candidates: int
    ndcg: float


def read_pairs(path: Path) -> list[Pair]:
    """The pairs of a file with one QUERY, tab, TITLE per line.

    Raises:
      ValueError: a line has another form, or there are too few titles to train on.
      OSError: the file cannot be read.
    """
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        query, tab, title = line.partition("\t")
        if not tab or "\t" in title:
            raise ValueError(f"{path}, line {number}: expected QUERY, tab, TITLE, got {line!r}")
        found.append((query, title))
    least = 5 * (_NEGATIVES + 1)
    if (titles := len({title for _, title in found})) < least:
        raise ValueError(f"{path} has {titles} different titles; at least {least} are needed")
    return found


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


def train(model: weights.MiniLM, known: Sequence[Pair]) -> dict[str, Any]:
    """Trains weights to score a query's own title highest: one pass, softmax over 8 titles."""
    upper = {f"{model.layers - 1 - number}/" for number in range(_TRAINED_LAYERS)}
    values = start(model)
    for name, value in values.items():
        if name[:2] in upper or name.startswith(("head/", "token_type")):
            values[name] = tf.Variable(value)
    trained = [value for value in values.values() if isinstance(value, tf.Variable)]
    reranker = Reranker(model, values)
    random = np.random.default_rng(_SEED)
    steps = len(known) // _BATCH
    schedule = tf.keras.optimizers.schedules.PolynomialDecay(_LEARNING_RATE, steps, 0.0)
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

    titles = np.array(sorted({title for _, title in known}), object)
    rows = random.permutation(len(known))[: steps * _BATCH].reshape(-1, _BATCH)
    for number, batch in enumerate(rows):
        choices = [[known[row][1], *_others(titles, known[row][1], random)] for row in batch]
        loss = step(tf.constant([known[row][0] for row in batch]), tf.constant(choices))
        if number % 20 == 0:
            print(f"{number} of {len(rows)}: loss {float(loss):.3f}", flush=True)
    return {name: np.asarray(value) for name, value in values.items()}


def _others(titles: Any, right: str, random: np.random.Generator) -> list[str]:
    """Other titles than the right one."""
    drawn = random.choice(titles, _NEGATIVES + 1, replace=False)
    return [title for title in drawn if title != right][:_NEGATIVES]


def evaluate(rank: Any, known: Sequence[Pair], held_out: Sequence[Pair]) -> Report:
    """Ranks the title of each held-out query among other titles.

    Args:
      rank: (query, titles) -> a score for each title.
      known: all pairs, because every title can be a candidate.
      held_out: pairs that were not used for training.
    """
    titles = sorted({title for _, title in known})
    size = min(_CANDIDATES, len(titles))
    random = np.random.default_rng(_SEED)
    found = []
    for query, right in held_out:
        drawn = random.choice(np.array(titles, object), size, replace=False)
        candidates = [right, *[title for title in drawn if title != right][: size - 1]]
        found.append(_ndcg(rank(query, candidates)))
    return Report(len(held_out), size, float(np.mean(found)))


def _ndcg(scores: Any) -> float:
    """NDCG at 10 if only the first title is relevant; titles with its score rank before it."""
    place = int(np.sum(np.asarray(scores) >= scores[0]))
    return float(1 / np.log2(1 + place)) if place <= 10 else 0.0


def ensure(pairs_file: Path, work_dir: Path = WORK_DIR) -> tuple[Path, Report]:
    """The model's base path and its quality; trains it (minutes) if it is missing.

    The file's last fifth, at most 100 pairs, is held out.
    """
    base_path = work_dir / "reranker"
    known = read_pairs(pairs_file)

    def make(folder: Path) -> dict[str, Any]:
        model = weights.load(work_dir)
        border = len(known) - min(len(known) // 5, _MOST_HELD_OUT)
        reranker = Reranker(model, train(model, known[:border]))
        save(reranker, folder)
        rank = lambda query, titles: reranker.rank([query], titles)["scores"].numpy()  # noqa: E731
        return asdict(evaluate(rank, known, known[border:]))

    made_by = (bert, packed, weights, words, sys.modules[__name__])
    digest = hashlib.sha256(pairs_file.read_bytes()).hexdigest()
    return base_path, Report(**cached(base_path, made_by, make, settings=digest))


def main(argv: Sequence[str] | None = None) -> int:
    """Trains the model if it is missing, and prints its quality."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=Path, required=True, help="one QUERY, tab, TITLE per line")
    parser.add_argument("--work-dir", type=Path, default=WORK_DIR)
    args = parser.parse_args(argv)
    try:
        base_path, report = ensure(args.pairs, args.work_dir)
    except (ValueError, OSError) as error:
        parser.error(str(error))
    print(
        f"{base_path}/{VERSION}: NDCG@10 {report.ndcg:.3f} on {report.queries} held-out queries "
        f"with {report.candidates} titles each"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
