"""Tables of servers that differ in their flags: state caches, and tf.Examples read into columns."""

from colcast.loadtest.formats import NO_STATES
from colcast.loadtest.server_variants import ServerVariant

_OFF = ("--example_transcoding=off",)
_EXACT = ("--example_transcoding=exact",)
_LATE = ("--example_transcoding=late",)

STATES = (
    ServerVariant("tf.Example", "example", (*_OFF, *NO_STATES)),
    ServerVariant("late, no caches", "late", NO_STATES),
    ServerVariant("late, nothing cached", "late"),
    ServerVariant("late, all cached", "late", cached=True),
)


def _transcoding(nothing_cached: tuple[str, ...] = ()) -> tuple[ServerVariant, ...]:
    return (
        ServerVariant("TensorFlow's parser", "example", _OFF),
        ServerVariant("exact", "example", _EXACT),
        ServerVariant("late, nothing cached", "example", (*_LATE, *nothing_cached)),
        ServerVariant("late, all cached", "example", _LATE, cached=True),
    )


# MovieLens has too few users and movies for requests of nothing but new ones: nothing is kept.
TRANSCODING = {"wide": _transcoding(), "movielens": _transcoding(NO_STATES)}
