"""An interrupt ends a program, whatever it was doing."""

import asyncio
import os
import signal
import sys
import time

import pytest
from colcast.loadtest.measure.interrupts import interruptible, run_until_interrupted


class Destroyed:
    """Is interrupted while it is destroyed."""

    def __init__(self, how: signal.Signals) -> None:
        self._how = how

    def __del__(self) -> None:
        os.kill(os.getpid(), self._how)
        time.sleep(0)  # where the handler runs


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_in_a_destructor_is_raised_after_it(how: signal.Signals):
    def destroy() -> None:
        Destroyed(how)
        time.sleep(60)

    with pytest.raises(KeyboardInterrupt), interruptible():
        destroy()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_elsewhere_is_raised_at_once(how: signal.Signals):
    with pytest.raises(KeyboardInterrupt), interruptible():
        os.kill(os.getpid(), how)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_lets_a_coroutine_clean_up(how: signal.Signals):
    cleaned = []

    async def work() -> None:
        try:
            os.kill(os.getpid(), how)
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            cleaned.append(how)

    with interruptible():
        before = signal.getsignal(how)
        with pytest.raises(KeyboardInterrupt):
            run_until_interrupted(work())
        assert signal.getsignal(how) is before
    assert cleaned == [how]


def test_a_coroutine_that_ends_gives_what_it_has():
    async def work() -> int:
        return 3

    assert run_until_interrupted(work()) == 3


def test_handlers_and_hook_are_put_back():
    def installed() -> list[object]:
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
        return [sys.unraisablehook, *map(signal.getsignal, numbers)]

    before = installed()
    with interruptible():
        assert installed() != before
    assert installed() == before


def test_other_exceptions_of_destructors_are_shown_as_ever(capsys: pytest.CaptureFixture[str]):
    class Broken:
        def __del__(self) -> None:
            raise ValueError("a broken destructor")

    with interruptible():
        Broken()
    assert "a broken destructor" in capsys.readouterr().err
