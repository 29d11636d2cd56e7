"""Tables of servers that differ in their flags: state stores, and tf.Examples read into columns."""

from colcast.loadtest.formats import NO_STORES
from colcast.loadtest.server_variants import ServerVariant

_OFF = ("--example_transcoding=off",)
_EXACT = ("--example_transcoding=exact",)
_LATE = ("--example_transcoding=late",)

STORES = (
    ServerVariant("tf.Example", "example", (*_OFF, *NO_STORES)),
    ServerVariant("late, no stores", "late", NO_STORES),
    ServerVariant("late, nothing known", "late"),
    ServerVariant("late, all known", "late", known=True),
)


def _transcoding(nothing_known: tuple[str, ...] = ()) -> tuple[ServerVariant, ...]:
    return (
        ServerVariant("TensorFlow's parser", "example", _OFF),
        ServerVariant("exact", "example", _EXACT),
        ServerVariant("late, nothing known", "example", (*_LATE, *nothing_known)),
        ServerVariant("late, all known", "example", _LATE, known=True),
    )


# MovieLens has too few users and movies for requests of nothing but new ones: its stores are off.
TRANSCODING = {"wide": _transcoding(), "movielens": _transcoding(NO_STORES)}
