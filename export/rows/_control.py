"""Rules for branches, loops, and the lists that loops fill."""

from collections.abc import Sequence
from dataclasses import replace

from colcast.export.graph._nodes import NodeDef, control_inputs, data_inputs, producer
from colcast.export.rows._facts import Axes, Fact, Kind, fixed, has_rows, join, mixed, sizes
from colcast.export.rows._op import Mixes, Op, as_value, rule


@rule("Switch", "RefSwitch")
def switch(op: Op) -> list[Fact]:
    """Switch forwards its tensor to one of two branches."""
    lengths = check_condition(op.inputs[1])
    chosen = replace(op.inputs[0], lengths=op.inputs[0].lengths | lengths)
    return [chosen, chosen]


@rule("Merge", "RefMerge")
def merge(op: Op) -> list[Fact]:
    """Merge outputs the tensor of the branch that ran."""
    made = op.inputs[0]
    for fact in op.inputs[1:]:
        made = join(made, fact)
    return [made, fixed(())]


def chosen(name: str, made: Sequence[Fact], conditions: Sequence[Fact]) -> list[Fact]:
    """Corrects `made`, the facts about a Merge's outputs, for the conditions of its branches."""
    meets = [fact for fact in conditions if fact.kind is Kind.MIXED]
    if meets:
        return [mixed(meets[0].why)] * len(made)
    try:
        lengths = frozenset[str]().union(*map(check_condition, conditions))
    except Mixes as error:
        return [mixed(f"Merge ({name}): {error}")] * len(made)
    return [replace(fact, lengths=fact.lengths | lengths) for fact in made]


def check_condition(fact: Fact) -> frozenset[str]:
    """Returns the lists whose length affects a condition.

    Raises:
        Mixes: the condition depends on a row, so one row decides for all.
    """
    value = as_value(fact)
    if value.kind is not Kind.FIXED:
        raise Mixes("a value in the request decides a branch")
    return value.lengths


@rule("TensorListReserve", "EmptyTensorList")
def reserve(op: Op) -> Fact:
    """Makes a list without entries, so only its length is known."""
    return replace(fixed(None), sizes=op.inputs[1].sizes)


@rule("TensorListFromTensor")
def list_of(op: Op) -> Fact:
    """Makes a list of the entries along a tensor's first dimension."""
    return as_value(op.inputs[0]) if has_rows(op.axes(0)[:1]) else op.inputs[0]


@rule("TensorListStack")
def stack(op: Op) -> Fact:
    return op.inputs[0] if op.inputs[0].axes is not None else fixed(None)


@rule("TensorListGetItem")
def get_item(op: Op) -> Fact:
    """Reads one entry of a list."""
    fact, place = op.inputs[:2]
    if place.kind is not Kind.FIXED or place.refers not in (None, *op.axes(0)[:1]):
        raise Mixes("an entry is read at a row's position")
    if has_rows(op.axes(0)[:1]) and (fact.kind is Kind.ROWS or place.refers is None):
        raise Mixes("rows are read one after another")
    return fact.changed(axes=op.axes(0)[1:])


@rule("TensorListSetItem")
def set_item(op: Op) -> Fact:
    fact, place, item = *op.inputs[:2], as_value(op.inputs[2])
    used = fact.axes is not None or fact.sizes is not None
    if place.kind is not Kind.FIXED or (used and not place.plain):
        raise Mixes("an entry is written at a row's position")
    if item.axes is None:
        raise Mixes("the rank of an entry is unknown")
    steps: Axes = ((f"size:{op.name}",),) if fact.axes is None else fact.axes[:1]
    if fact.axes is None and fact.sizes is not None:
        steps = tuple(each for each in fact.sizes if each is not None)
    if len(steps) != 1 or has_rows(steps):
        raise Mixes("rows are written one after another")
    return join(fact, item.changed(axes=(*steps, *item.axes)))


@rule("TensorListLength")
def list_length(op: Op) -> Fact:
    return sizes(op.axes(0)[:1], scalar=True)


# A branch may be a constant without data inputs, so control inputs decide whether it runs.
SWITCHES = ("Switch", "RefSwitch")
MERGES = ("Merge", "RefMerge")

_Ways = frozenset[tuple[str, int]]


class Ways:
    """The conditions under which nodes run, for nodes in topological order."""

    def __init__(self) -> None:
        self._under: dict[str, _Ways] = {}  # node -> (condition, required branch)
        self._switched: dict[str, str] = {}  # Switch -> its condition
        self._same: dict[str, str] = {}  # output of an Identity -> the tensor that it forwards

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
