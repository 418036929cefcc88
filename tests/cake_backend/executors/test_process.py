"""Child processes under a time limit: real children, real signals."""

from __future__ import annotations

import os
import sys
import threading
import time

import pytest

from cake_backend.executors.process import OUTPUT_LIMIT, run_group


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_exit_status_and_output_are_returned() -> None:
    ended = run_group(python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)"), timeout=20)
    assert (ended.returncode, ended.timed_out, ended.cancelled) == (7, False, False)
    assert "out" in ended.output_tail and "err" in ended.output_tail
    assert ended.describe() == "exit status 7"


def test_a_segmentation_fault_is_named() -> None:
    ended = run_group(python("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"), timeout=20)
    assert ended.signal_name == "SIGSEGV"


def test_a_child_that_hangs_is_killed_at_its_limit() -> None:
    start = time.monotonic()
    ended = run_group(python("import time, signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"), timeout=0.5)
    assert ended.timed_out and time.monotonic() - start < 10


@pytest.mark.parametrize("parent_hangs", [True, False])
def test_descendants_die_with_the_group(tmp_path, parent_hangs: bool) -> None:
    note = tmp_path / "pid"
    code = (
        "import subprocess, sys, time\n"
        f"p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"open({str(note)!r}, 'w').write(str(p.pid))\n" + ("time.sleep(60)\n" if parent_hangs else "")
    )
    ended = run_group(python(code), timeout=2.0 if parent_hangs else 30.0)
    assert ended.timed_out is parent_hangs
    pid = int(note.read_text())
    deadline = time.monotonic() + 5
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive(pid)


def test_output_without_end_neither_blocks_nor_fills_memory() -> None:
    ended = run_group(python("import os\nwhile True: os.write(1, b'x' * 65536)"), timeout=0.5)
    assert ended.timed_out and len(ended.output_tail) <= OUTPUT_LIMIT


def test_a_cancelled_child_ends_at_once() -> None:
    cancel = threading.Event()
    threading.Timer(0.3, cancel.set).start()
    start = time.monotonic()
    ended = run_group(python("import time; time.sleep(60)"), timeout=30, cancel=cancel)
    assert ended.cancelled and not ended.timed_out and time.monotonic() - start < 10


def test_the_child_runs_in_a_group_of_its_own() -> None:
    ended = run_group(python("import os; print(os.getpgid(0), os.getpid())"), timeout=20)
    group, pid = map(int, ended.output_tail.split())
    assert group == pid != os.getpgid(0)
