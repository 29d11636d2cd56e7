"""CPU time and memory of a process, by pid."""

import os
import subprocess
import sys
import time
from itertools import pairwise

import pytest
from colcast.loadtest.process import ProcessMeter


def test_it_counts_all_the_cpu_time_of_the_process():
    meter = ProcessMeter(os.getpid())
    before, own = meter.cpu_seconds(), time.process_time()
    sum(range(1_000_000))
    assert meter.cpu_seconds() - before == pytest.approx(time.process_time() - own, abs=0.005)


def test_it_sees_work_shorter_than_a_clock_tick():
    meter = ProcessMeter(os.getpid())
    readings = [meter.cpu_seconds() for _ in range(100)]
    steps = [after - before for before, after in pairwise(readings)]
    assert max(steps) > 0
    assert sorted(steps)[50] < 0.001


def test_a_waiting_process_uses_none():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    meter = ProcessMeter(child.pid)
    try:
        assert meter.memory_bytes() > 0
        assert meter.peak_memory_bytes() >= meter.memory_bytes()
    finally:
        child.communicate(b"\n")
    with pytest.raises(ProcessLookupError, match=f"no process {child.pid}"):
        meter.cpu_seconds()
    with pytest.raises(ProcessLookupError):
        meter.memory_bytes()
