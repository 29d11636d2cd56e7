"""An interrupt ends a program, whatever it was doing."""

import os
import signal
import sys
import time

import pytest
from colcast.loadtest.measure.interrupts import interruptible


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
