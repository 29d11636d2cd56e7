"""Which multi-valued features a served model takes with exactly one value: found by asking it.

An optional scalar (VarLenFeature) that the model reshapes to [N, 1] is declared like a list.
"""

from collections.abc import Callable, Collection
from dataclasses import replace

from colcast.client import RankingClient, ServerError
from colcast.loadtest.formats import RequestData

Accepts = Callable[[RequestData], bool]

_REFUSALS = ("INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_RANGE", "INTERNAL", "UNIMPLEMENTED")


def accepted_by(client: RankingClient, signature: str | None) -> Accepts:
    """Asks a server whether its model takes a request, with the user on every row.

    Args:
      client: of the server.
      signature: that takes the columns; None: the usual one.
    """

    def accepts(data: RequestData) -> bool:
        with replace(client, signature=signature) as one:
            try:
                one.rank(data.user, data.items, target="repeated")
            except ServerError as error:
                if error.code in _REFUSALS:
                    return False
                raise
        return True

    return accepts


def one_valued(lists: Collection[str], tried: Callable[[Collection[str]], bool]) -> set[str]:
    """The fewest of the lists that must have one value each; none if that does not help.

    Args:
      lists: names of multi-valued features.
      tried: whether the model takes requests in which those named have one value.
    """
    if tried(()) or not tried(lists):
        return set()
    needed = set(lists)

    def spare(names: list[str]) -> None:
        if tried(needed - set(names)):
            needed.difference_update(names)
        elif len(names) > 1:
            spare(names[: len(names) // 2])
            spare(names[len(names) // 2 :])

    spare(sorted(lists))
    return needed
