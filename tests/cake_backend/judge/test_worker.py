"""The worker as a process: what it imports, what it says on a machine without a GPU, and how the parent reads whatever it leaves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import cake_kernels
from cake_backend.executors.lease import LeaseTimeout, gpu_lease
from cake_backend.executors.local import run_worker, worker_environment
from cake_backend.judge import hangs
from cake_backend.judge.devices import find_devices, runs_on, target_of
from cake_backend.judge.plan import Options, make_plan
from cake_backend.judge.protocol import EVENTS, ProtocolError, numbers, read_events, write_request
from cake_backend.judge.session import Candidate, run_session
from cake_backend.judge.status import MEANINGS, Status
from cake_backend.judge.verdict import judge_session
from cake_backend.manifest import Manifest

GEMM = cake_kernels.tasks()["gemm"]
MANIFEST = Manifest.from_json(
    {
        "version": 1, "schedule": "g", "target": "sm_90a",
        "launches": [{
            "entry": "g", "block": 128, "grid": {"kind": "tiles", "tiles": ["cdiv(M, 64)", "cdiv(N, 64)"]},
            "params": [{"kind": "ptr", "tensor": n} for n in "ABC"] + [{"kind": "scalar", "name": n, "ctype": "i32"} for n in "MNK"],
        }],
        "tensors": {n: {"rank": 2, "dtype": "bf16", "mode": m} for n, m in (("A", "in"), ("B", "in"), ("C", "out"))},
        "scalars": {"M": "i32", "N": "i32", "K": "i32"},
    }
)  # fmt: skip
NO_GPU = not find_devices().devices


@pytest.fixture(autouse=True)
def own_leases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAKE_LEASES", str(tmp_path / "leases"))


def test_the_worker_imports_nothing_but_the_standard_library_numpy_and_the_driver_bindings() -> None:
    code = (
        "import sys; before = set(sys.modules)\n"
        "import cake_backend.judge.worker\n"
        "tops = {m.split('.')[0] for m in set(sys.modules) - before}\n"
        "print(sorted(t for t in tops if t not in sys.stdlib_module_names))\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=worker_environment(), check=True)
    assert set(eval(out.stdout)) <= {"numpy", "cake_backend", "cuda"}


def test_the_workers_environment_holds_nothing_of_the_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAKE_SECRET_TOKEN", "x")
    assert "CAKE_SECRET_TOKEN" not in worker_environment()


@pytest.mark.skipif(not NO_GPU, reason="this machine has a GPU")
def test_without_a_driver_the_worker_says_so_and_nobody_is_blamed(tmp_path: Path) -> None:
    plan = make_plan(GEMM, {}, Options(shapes=("edge_thin",), distributions=("normal",)), seal="x")
    session = run_session(Candidate(b"\x7fELF", MANIFEST), GEMM, plan, Options(run_timeout=60))
    assert session.run is not None and session.run.ended.returncode == 4
    assert session.of("fault")[0]["kind"] == "driver"
    verdict = judge_session(session, Candidate(b"", MANIFEST), GEMM)
    assert verdict["status"] == "INFRA_ERROR" and not Status(verdict["status"]).blames_candidate


@pytest.mark.skipif(not NO_GPU, reason="this machine has a GPU")
def test_a_machine_without_a_gpu_is_described_not_raised() -> None:
    found = find_devices()
    assert found.devices == () and found.reason


def test_a_request_that_is_none_is_a_fault_not_a_crash(tmp_path: Path) -> None:
    write_request(tmp_path, {"device": 0, "poison": 1, "cases": []}, b"")
    (tmp_path / "request.json").write_text('{"version": 99}')
    out = run_worker(tmp_path, timeout=60)
    assert out.ended.returncode not in (0, None)


def test_a_candidate_that_cannot_be_bound_is_told_before_any_process_starts() -> None:
    guarded = Manifest.from_json(
        {**MANIFEST.to_json(), "guards": [{"expr": "M % 128 == 0", "message": "M is a multiple of 128", "line": 7}]}
    )
    plan = make_plan(GEMM, {}, Options(shapes=("edge_thin",)), seal="x")
    session = run_session(Candidate(b"", guarded), GEMM, plan, Options())
    verdict = judge_session(session, Candidate(b"", guarded), GEMM)
    assert session.run is None and verdict["status"] == "RUNTIME_ERROR" and verdict["faults"][0]["line"] == 7
    assert "M is a multiple of 128" in verdict["summary"]


# ------------------------------------------------------------ what a hostile or dying worker may leave behind


def fake_python(tmp_path: Path, body: str) -> str:
    """A stand-in for the interpreter that runs `body` with FOLDER set: the real process control, another program."""
    path = tmp_path / "python"
    path.write_text(f'#!{sys.executable}\nimport os, sys, json, time, signal\nFOLDER = sys.argv[-1]\n'
                    f'def emit(x): open(os.path.join(FOLDER, "{EVENTS}"), "ab").write(x)\n{body}\n')  # fmt: skip
    path.chmod(0o755)
    return str(path)


def verdict_of(tmp_path: Path, body: str, **options: object) -> dict:
    plan = make_plan(GEMM, {}, Options(shapes=("edge_thin",), distributions=("normal",)), seal="x")
    candidate = Candidate(b"", MANIFEST, roles=("math", "load"), barriers=("full", "empty"))
    session = run_session(candidate, GEMM, plan, Options(run_timeout=20, **options), python=fake_python(tmp_path, body))
    return judge_session(session, candidate, GEMM)


RUN = (
    'emit(json.dumps({"event": "run", "case": "c000", "repeat": 0, "digests": {}, "bands": {}, "modified": [], "seconds": 0}).encode()'
    ' + b"\\n"); emit(b\'{"event": "done"}\\n\')'
)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("sys.exit(0)", "INFRA_ERROR"),
        ("os._exit(0)", "INFRA_ERROR"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "INFRA_ERROR"),
        ("print('{\"status\": \"PASSED\"}'); sys.exit(0)", "INFRA_ERROR"),
        ("emit(b'{\"event\": \"done\"}\\n')", "INFRA_ERROR"),
        ("emit(b'{\"event\": \"verdict\", \"status\": \"PASSED\"}\\n')", "INFRA_ERROR"),
        ("emit(b'\\xff\\x00garbage\\n')", "INFRA_ERROR"),
        ("emit(b'[' * 100000 + b'\\n')", "INFRA_ERROR"),
        ("emit(b'x' * (5 << 20) + b'\\n')", "INFRA_ERROR"),
        (RUN, "INFRA_ERROR"),
        (RUN + "; open(os.path.join(FOLDER, 'c000', 'C.out'), 'wb').write(b'12')", "INFRA_ERROR"),
        (RUN + "; os.symlink('/dev/zero', os.path.join(FOLDER, 'c000', 'C.out'))", "INFRA_ERROR"),
        (RUN + "; open(os.path.join(FOLDER, 'c000', 'C.out'), 'wb').write(bytes(16))", "INCORRECT_NUMERICAL"),
    ],
)
def test_no_worker_can_talk_its_way_to_a_pass(tmp_path: Path, body: str, status: str) -> None:
    verdict = verdict_of(tmp_path, body)
    assert verdict["status"] == status, verdict["summary"]


def test_a_worker_that_hangs_is_killed_and_called_a_timeout(tmp_path: Path) -> None:
    start = time.monotonic()
    plan = make_plan(GEMM, {}, Options(shapes=("edge_thin",), distributions=("normal",)), seal="x")
    candidate = Candidate(b"", MANIFEST)
    session = run_session(candidate, GEMM, plan, Options(run_timeout=0.5), python=fake_python(tmp_path, "time.sleep(60)"))
    assert judge_session(session, candidate, GEMM)["status"] == "TIMEOUT" and time.monotonic() - start < 15


def test_hang_records_survive_a_killed_worker_and_name_the_authors_barriers(tmp_path: Path) -> None:
    body = (
        "import struct\n"
        "rec = lambda role, bar, st, par, it, tile, blk, thr: struct.pack('<16I', 0xCA4E0001, role, bar, st, par, it, tile, blk, thr,"
        " *[0] * 7)\n"
        "data = rec(1, 1, 0, 0, 12, 0, 0, 256) + bytes(64) + rec(0, 0, 0, 1, 12, 0, 0, 0) + rec(0, 0, 0, 1, 12, 0, 0, 32)\n"
        "open(os.path.join(FOLDER, 'hang.bin'), 'wb').write(data)\n"
        "time.sleep(60)"
    )
    plan = make_plan(GEMM, {}, Options(shapes=("edge_thin",), distributions=("normal",)), seal="x")
    candidate = Candidate(b"", MANIFEST, roles=("math", "load"), barriers=("full", "empty"))
    session = run_session(candidate, GEMM, plan, Options(run_timeout=1.0), python=fake_python(tmp_path, body))
    verdict = judge_session(session, candidate, GEMM)
    assert verdict["status"] == "HANG" and verdict["hang"]["records"] == 3
    assert "`math` waits for `full[0]` (parity 1, position 12)" in verdict["summary"] and "`load` waits for `empty[0]`" in verdict["summary"]


def test_a_cancelled_run_ends_at_once(tmp_path: Path) -> None:
    cancel = threading.Event()
    threading.Timer(0.4, cancel.set).start()
    plan = make_plan(GEMM, {}, Options(shapes=("edge_thin",), distributions=("normal",)), seal="x")
    candidate = Candidate(b"", MANIFEST)
    session = run_session(candidate, GEMM, plan, Options(), cancel=cancel, python=fake_python(tmp_path, "time.sleep(60)"))
    assert judge_session(session, candidate, GEMM)["status"] == "CANCELLED"


# ------------------------------------------------------------ pieces


def test_a_last_line_without_its_end_is_dropped(tmp_path: Path) -> None:
    (tmp_path / EVENTS).write_bytes(b'{"event": "done"}\n{"event": "dev')
    assert read_events(tmp_path) == [{"event": "done"}]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, True, "1", None])
def test_times_that_no_clock_gives_are_refused(value: object) -> None:
    with pytest.raises(ProtocolError):
        numbers([0.5, value])


def test_a_lease_excludes_and_is_free_again_when_its_holder_dies(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from cake_backend.executors.lease import gpu_lease\n"
        "with gpu_lease(0, folder=Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True, env=worker_environment())
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    with pytest.raises(LeaseTimeout, match="device 0 is busy"), gpu_lease(0, timeout=0.2, folder=tmp_path):
        pass
    with gpu_lease(1, timeout=0.2, folder=tmp_path):
        pass
    holder.kill()
    holder.wait()
    holder.stdout.close()
    with gpu_lease(0, timeout=5, folder=tmp_path) as waited:
        assert waited < 5


def test_hang_records_are_read_from_any_slot() -> None:
    assert hangs.read_records(bytes(640)) == [] and hangs.read_records(b"") == [] and hangs.read_records(bytes(63)) == []
    assert hangs.buffer_bytes([(132, 384), (4, 1024)]) == 132 * 12 * 64
    assert hangs.buffer_bytes([(2**31, 1024)]) == 0
    assert hangs.summarise([])["sentence"] == "no wait was reported"


def test_devices_and_targets() -> None:
    h200 = {"capability": [9, 0]}
    assert target_of(h200) == "sm_90a" and target_of({"capability": [8, 9]}) == "sm_89"
    assert runs_on("sm_90a", h200) and not runs_on("sm_80", h200) and not runs_on("sm_100a", h200)
    assert runs_on("sm_80", {"capability": [8, 9]}) and not runs_on("sm_89", {"capability": [8, 0]})


def test_every_status_has_a_meaning_and_exports_only_what_others_know() -> None:
    assert set(MEANINGS) == set(Status)
    known = {"PASSED", "INCORRECT_SHAPE", "INCORRECT_DTYPE", "INCORRECT_NUMERICAL", "RUNTIME_ERROR", "COMPILE_ERROR", "TIMEOUT", None}
    assert {m.flashinfer for m in MEANINGS.values()} <= known
    assert Status.PASSED.meaning.flashinfer == "PASSED" and Status.PASSED_UNTIMED.meaning.flashinfer is None
    assert not any(MEANINGS[s].blames_candidate for s in (Status.INFRA_ERROR, Status.SKIPPED, Status.CANCELLED, Status.PASSED))
    assert json.dumps(Status.HANG) == '"HANG"'


def test_work_folders_are_removed(tmp_path: Path) -> None:
    def folders() -> set[str]:
        return {n for place in ("/dev/shm", "/tmp") if os.path.isdir(place) for n in os.listdir(place) if n.startswith("cake-run-")}

    before = folders()
    verdict_of(tmp_path, "sys.exit(1)")
    assert folders() <= before
