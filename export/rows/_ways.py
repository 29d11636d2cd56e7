"""Tracks which branches decide whether a node runs: Switch and Merge of TensorFlow 1.

A branch may be a constant without data inputs, which runs or not because of its control inputs.
"""

from collections.abc import Sequence

from colcast.export.graph._flat_graph import NodeDef, control_inputs, data_inputs, producer

SWITCHES = ("Switch", "RefSwitch")
MERGES = ("Merge", "RefMerge")

_Ways = frozenset[tuple[str, int]]


class Ways:
    """The conditions under which nodes run, for nodes in topological order."""

    def __init__(self) -> None:
        self._under: dict[str, _Ways] = {}  # by node: each condition with the branch to take
        self._switched: dict[str, str] = {}  # by Switch: its condition
        self._same: dict[str, str] = {}  # tensors that another one passes on unchanged

    def conditions(self, node: NodeDef) -> list[str]:
        """The tensors that decide which input a Merge outputs; none for other nodes.

        Must be called for every node, inputs first.
        """
        sources = data_inputs(node)
        if node.op in ("Identity", "Snapshot"):
            self._same[f"{node.name}:0"] = self._origin(sources[0])
        ways = [self._of(source) for source in sources]
        held = [self._under.get(source, _Ways()) for source in control_inputs(node)]
        if node.op not in MERGES:
            self._under[node.name] = _Ways().union(*ways, *held)
            if node.op in SWITCHES:
                self._switched[node.name] = self._origin(sources[1])
            return []
        always = _common(ways)
        self._under[node.name] = always.union(*held)
        return sorted({condition for each in ways for condition, _ in each - always})

    def _of(self, tensor: str) -> _Ways:
        node = producer(tensor)
        under = self._under.get(node, _Ways())
        if node not in self._switched:
            return under
        return under | {(self._switched[node], int(tensor.partition(":")[2]))}

    def _origin(self, tensor: str) -> str:
        return self._same.get(tensor, tensor)


def _common(ways: Sequence[_Ways]) -> _Ways:
    return frozenset.intersection(*ways) if ways else _Ways()
