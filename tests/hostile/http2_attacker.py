"""Attacks a server: python -m tests.hostile.http2_attacker ATTACK HOST:PORT CORE, until a SIGTERM.

Says when it has begun, and at the end how its connections have ended: "3 GOAWAY 11, closed".
"""

import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from . import http2
from .http2_attacks import ATTACKS, Attack


@dataclass
class Attacker:
    """One connection of an attack. It sends what the server takes, and never waits for it."""

    attack: Attack
    target: str
    heard: bytearray = field(default_factory=bytearray)
    sent: int = 0
    ended: bool = False

    def __post_init__(self) -> None:
        self.socket = http2.connect(self.target, self.attack.window)
        self.socket.setblocking(False)
        self._blocks: Iterator[bytes] = self.attack.blocks()
        self._rest = b""
        self._next = 0.0

    def step(self) -> None:
        """Sends once, and reads once."""
        try:
            if self.attack.reads:
                self._read()
            self._send()
        except BlockingIOError:
            pass
        except OSError:
            self.ended = True

    def _send(self) -> None:
        if not self._rest and time.monotonic() >= self._next:
            self._rest = next(self._blocks, b"")
            self._next = time.monotonic() + self.attack.pause
            if not self._rest and self.attack.hangs_up:
                self.ended = True
        if self._rest:
            sent = self.socket.send(self._rest)
            self._rest = self._rest[sent:]
            self.sent += sent

    def _read(self) -> None:
        try:
            octets = self.socket.recv(1 << 16)
        except BlockingIOError:
            return
        self.heard = (self.heard + octets)[-4096:]
        if not octets:
            self.ended = True

    def end(self) -> str:
        """How the connection ended, as far as its last bytes tell."""
        hung_up = self.attack.hangs_up and not self._rest
        try:
            while not hung_up and (octets := self.socket.recv(1 << 16)):
                self.heard = (self.heard + octets)[-4096:]
            closed = True
        except BlockingIOError:
            closed = False
        except OSError:
            closed = True
        self.socket.close()
        for at in range(len(self.heard) - 17, -1, -1):
            if self.heard[at + 3 : at + 9] == b"\x07\0\0\0\0\0":
                code = int.from_bytes(self.heard[at + 13 : at + 17])
                if code < 14 and (closed or code):
                    return f"GOAWAY {code}" + (", closed" if closed else "")
        return "hung up" if hung_up else "closed" if closed else "open"


def main() -> int:
    """Attacks; a connection that has ended is followed by another."""
    name, target, core = sys.argv[1:]
    os.sched_setaffinity(0, {int(core)})
    stops: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stops.append(number))
    attack, attackers, ends, begun = ATTACKS[name], [], Counter[str](), False
    while not stops:
        if len(attackers) < attack.connections:
            attackers.append(Attacker(attack, target))
            if not begun and (ends or len(attackers) == attack.connections):
                begun = True
                print("begun", flush=True)
        for attacker in attackers:
            attacker.step()
        for attacker in [each for each in attackers if each.ended]:
            attackers.remove(attacker)
            ends[attacker.end()] += 1
        if attack.pause or attack.connections > 1:
            time.sleep(0.001)
    ends.update(attacker.end() for attacker in attackers)
    print("; ".join(f"{count} {end}" for end, count in ends.most_common(3)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
