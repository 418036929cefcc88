"""Identities of processes, and ending one with all it started."""

import os
import subprocess
import sys
import time

from cake_mcp.jobs import processes

# A process that ignores SIGTERM and starts a grandchild in a session of its own, as a compiler driver or a GPU worker might.
STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
print(child.pid, flush=True)
time.sleep(600)
"""


def test_an_identity_tells_the_living_from_the_dead() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    owner = processes.identity(child.pid)
    assert processes.gone(owner) is False
    child.communicate(b"\n")
    assert processes.gone(owner) is True


def test_a_number_that_is_used_again_is_another_process() -> None:
    assert processes.gone(processes.identity() + "0") is True


def test_other_machines_cannot_be_judged() -> None:
    assert processes.gone("elsewhere:1:1") is None


def test_a_tree_is_ended_although_it_ignores_being_asked_and_left_its_group() -> None:
    child = subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert child.stdout is not None
    grandchild = int(child.stdout.readline())
    family = [processes.identity(child.pid), processes.identity(grandchild)]
    assert grandchild in processes.descendants(child.pid)
    processes.end_tree(family[0], grace=0.2)
    child.communicate(timeout=10)
    deadline = time.monotonic() + 10
    while not all(processes.gone(owner) for owner in family) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert [processes.gone(owner) for owner in family] == [True, True]


def test_ending_a_process_that_has_ended_does_nothing() -> None:
    processes.end_tree(processes.identity() + "0")
    assert os.getpid() > 0
