"""The table of variants, one per row; a group's first variant is its baseline."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from colcast.loadtest.send.formats import FORMATS_ALONE, NO_STATES

SIZES = (20, 100, 500)
PAPERS = (
    *("ncf", "wide_deep", "multi_task_wide_deep", "dlrm_rmc1", "dlrm_rmc2", "dlrm_rmc3"),
    *("din", "dien"),
)


@dataclass(frozen=True)
class Variant:
    """One way to request scores; a group's variants take turns and send the same requests.

    Attributes:
      part: the first word of a selection, such as "formats".
      group: the second word, such as "wide".
      title: its name in the printed table.
      send: a format of `colcast loadtest`, "by key" or "ModelInfer".
      flags: flags of its server; variants with the same model and flags share a server. "{tables}"
        stands for the folder of an item table with every candidate.
      model: the served model; by default the group's name.
      sizes: numbers of candidates per request.
      clients: number of clients; each waits for an answer before it sends its next request.
      fresh: whether every request has a user and items that are new to the server; if not, the
          variant repeats the same ten requests.
    """

    part: str
    group: str
    title: str
    send: str
    flags: tuple[str, ...] = ()
    model: str = ""
    sizes: tuple[int, ...] = SIZES
    clients: int = 4
    fresh: bool = False

    @property
    def served(self) -> str:
        """The name of the served model."""
        return self.model or self.group

    @property
    def name(self) -> str:
        """The part and the group, written as in a selection."""
        return f"{self.part}/{self.group}"


def _formats(part: str, model: str) -> tuple[Variant, ...]:
    return tuple(
        Variant(part, model, name, name, FORMATS_ALONE)
        for name in ("example", "repeated", "columnar", "late")
    )


def _transcoding(model: str, *, fresh: bool) -> tuple[Variant, ...]:
    """Transcoding variants; `fresh` if the model has enough users and items to repeat none."""
    off, exact, late = (f"--example_transcoding={mode}" for mode in ("off", "exact", "late"))
    new = (late,) if fresh else (late, *NO_STATES)
    return (
        Variant("transcoding", model, "TensorFlow's parser", "example", (off,), fresh=fresh),
        Variant("transcoding", model, "exact", "example", (exact,), fresh=fresh),
        Variant("transcoding", model, "late, nothing cached", "example", new, fresh=fresh),
        Variant("transcoding", model, "late, all cached", "example", (late,)),
    )


def _graphs(model: str) -> tuple[Variant, ...]:
    return tuple(
        Variant("graphs", model, mode, "late", (f"--graph_optimization={mode}", *NO_STATES))
        for mode in ("off", "exact")
    )


_KEYED = ("--item_table=wide:bench_key:{tables}",)
_ALONE = ("--nojoin_waiting_requests", *NO_STATES)
_MANY = 32
_TEXTS = ("--item_state_bytes=0",)

TABLE = (
    *_formats("formats", "movielens"),
    *_formats("formats", "wide"),
    Variant("states", "wide", "example", "example", FORMATS_ALONE, fresh=True),
    Variant("states", "wide", "late, no caches", "late", NO_STATES, fresh=True),
    Variant("states", "wide", "late, nothing cached", "late", fresh=True),
    Variant("states", "wide", "late, all cached", "late"),
    Variant("keys", "wide", "features sent", "late", _KEYED),
    Variant("keys", "wide", "by key", "by key", _KEYED),
    *_transcoding("wide", fresh=True),
    *_transcoding("movielens", fresh=False),
    Variant("batches", "wide", "alone", "late", _ALONE, sizes=(20,), clients=_MANY),
    Variant("batches", "wide", "joined", "late", NO_STATES, sizes=(20,), clients=_MANY),
    Variant("protocols", "wide", "Predict", "late", NO_STATES),
    Variant("protocols", "wide", "ModelInfer", "ModelInfer", NO_STATES),
    Variant("encoding", "wide", "tf.Examples, protobuf", "tf.Examples", sizes=(500,)),
    Variant("encoding", "wide", "tf.make_tensor_proto", "tensor protos", sizes=(500,)),
    Variant("encoding", "wide", "rows of dicts", "rows", sizes=(500,)),
    Variant("encoding", "wide", "mixed rows, user found", "mixed rows", sizes=(500,)),
    Variant("encoding", "wide", "arrays", "arrays", sizes=(500,)),
    *(row for model in ("wide", "movielens", "dlrm_rmc1") for row in _graphs(model)),
    *(row for model in PAPERS for row in _formats("papers", model)),
    Variant("text", "encode", "float32", "encode", _TEXTS, "encoder", (1, 32)),
    Variant("text", "encode", "bfloat16", "encode", _TEXTS, "encoder_bfloat16", (1, 32)),
)

USUAL = ("formats", "states", "keys", "transcoding", "batches", "protocols", "encoding")


def selected(names: Sequence[str]) -> list[Variant]:
    """The rows of these parts (`states`) and groups (`formats/wide`), in the table's order."""
    known = dict.fromkeys(name for row in TABLE for name in (row.part, row.name))
    for name in names:
        if name not in known:
            raise ValueError(f"no rows {name!r}; expected {', '.join(known)}")
    return [row for row in TABLE if row.part in names or row.name in names]


def groups(rows: Sequence[Variant]) -> Iterator[tuple[str, list[Variant]]]:
    for name, of_group in groupby(rows, lambda row: row.name):
        yield name, list(of_group)
