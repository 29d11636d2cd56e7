"""The users whose states a replica keeps: S3-FIFO, as server/states/shard.cc has it."""

from collections import OrderedDict, deque

_SMALL_QUEUES_SHARE = 10  # a tenth
_MOST_TIMES_FOUND = 3


class StateCache:
    """States of equal size, found by user."""

    def __init__(self, capacity: int) -> None:
        """Keeps at most `capacity` states; 0 keeps none."""
        self._capacity = capacity
        self._small: deque[int] = deque()
        self._main: deque[int] = deque()
        self._times_found: dict[int, int] = {}
        self._gone: OrderedDict[int, None] = OrderedDict()  # who left the small queue, latest last

    def __len__(self) -> int:
        return len(self._times_found)

    def find(self, user: int) -> bool:
        """Whether the user's state was kept; it is from now on."""
        found = self._times_found.get(user)
        if found is not None:
            self._times_found[user] = min(found + 1, _MOST_TIMES_FOUND)
            return True
        if self._capacity:
            self._insert(user)
        return False

    def _insert(self, user: int) -> None:
        self._times_found[user] = 0
        if user in self._gone:
            del self._gone[user]
            self._main.append(user)
        else:
            self._small.append(user)
        if len(self._times_found) > self._capacity:
            self._evict_one()

    def _evict_one(self) -> None:
        while True:
            small_is_full = len(self._small) * _SMALL_QUEUES_SHARE >= self._capacity
            if self._small and (small_is_full or not self._main):
                user = self._small.popleft()
                if self._times_found[user]:
                    self._times_found[user] = 0
                    self._main.append(user)
                    continue
                self._remember(user)
                break
            user = self._main.popleft()
            if not self._times_found[user]:
                break
            self._times_found[user] -= 1
            self._main.append(user)
        del self._times_found[user]

    def _remember(self, user: int) -> None:
        self._gone[user] = None
        while len(self._gone) > len(self._main):
            self._gone.popitem(last=False)
