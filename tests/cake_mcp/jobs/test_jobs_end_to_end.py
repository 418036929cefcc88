"""Jobs as clients and servers meet them: real servers, real child processes, real ends.

The workspace has a task of its own whose oracle says that it has begun, starts a process, and waits until the test lets it go on.
"""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mcp_clients import BareServer

from cake_mcp import workspace as workspaces
from cake_mcp.jobs import processes
from cake_mcp.workspace import Workspace

TASK = """
import dataclasses, json, os, subprocess, sys, time
from pathlib import Path
import cake_kernels

HERE = Path(__file__).resolve().parent
RMSNORM = cake_kernels.tasks()["rmsnorm"]

def oracle(inputs, axes, rows):
    if not (HERE / "go").exists():
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
        (HERE / "begun.tmp").write_text(json.dumps([os.getpid(), child.pid]))
        os.replace(HERE / "begun.tmp", HERE / "begun")
        while not (HERE / "go").exists():
            time.sleep(0.02)
        child.kill()
        child.wait()
    return RMSNORM.oracle(inputs, axes, rows)

TASK = dataclasses.replace(RMSNORM, name="patient", oracle=oracle)
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    workspace = workspaces.create(tmp_path / ".cake")
    (workspace.root / "tasks" / "patient.py").write_text(TASK)
    yield workspace
    for job in workspace.store.jobs.in_state("queued", "running"):
        workspace.store.jobs.cancel(job.id)
        if job.owner is not None and job.pid is not None:
            processes.end_tree(job.owner, grace=0.1)
    workspace.store.close()


@pytest.fixture
def server(workspace: Workspace) -> Iterator[BareServer]:
    server = BareServer(workspace.root)
    yield server
    server.close()


def propose(server: BareServer) -> str:
    import cake_kernels

    text = next(s.text for s in cake_kernels.schedules() if s.family == "rmsnorm")
    return server.call("propose_candidate", text=text, task="patient")["structuredContent"]["candidate_id"]


def until(what: Callable[[], object], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.05)


def begun(workspace: Workspace) -> list[str]:
    """Identities of the job's process and of the one it started, once the work has begun."""
    path = workspace.root / "tasks" / "begun"
    until(path.exists)
    family = [processes.identity(pid) for pid in json.loads(path.read_text())]
    path.unlink()
    return family


def all_gone(family: list[str]) -> bool:
    return all(processes.gone(owner) for owner in family)


def start(server: BareServer, candidate: str, **arguments: object) -> dict:
    return server.call("compile_and_run", candidate_id=candidate, device="simulate", wait_s=0, **arguments)["structuredContent"]


def test_the_same_work_is_one_job_and_other_calls_answer_meanwhile(server: BareServer, workspace: Workspace) -> None:
    candidate = propose(server)
    job = start(server, candidate)["job"]
    begun(workspace)
    assert start(server, candidate, again=True)["job"]["job_id"] == job["job_id"]
    waiting = server.begin("tools/call", {"name": "get_job", "arguments": {"job_id": job["job_id"], "wait_s": 5}})
    begin = time.monotonic()
    assert server.call("verify", candidate_id=candidate)["isError"] is False
    assert server.request("ping")["result"] == {}
    assert time.monotonic() - begin < 4.5
    assert server.answer_to(waiting)["result"]["structuredContent"]["job"]["state"] == "running"


def test_cancelling_ends_every_process_of_the_job(server: BareServer, workspace: Workspace) -> None:
    job = start(server, propose(server))["job"]["job_id"]
    family = begun(workspace)
    answer = server.call("cancel_job", job_id=job)["structuredContent"]
    assert answer["ok"] and answer["job"]["state"] == "cancelled"
    until(lambda: all_gone(family), 10)
    again = server.call("cancel_job", job_id=job)["structuredContent"]
    assert again["ok"] and "ended already" in again["summary"]


def test_a_cancelled_call_takes_the_job_it_made_with_it_and_the_server_goes_on(server: BareServer, workspace: Workspace) -> None:
    candidate = propose(server)
    call = server.begin(
        "tools/call",
        {
            "name": "compile_and_run",
            "arguments": {"candidate_id": candidate, "device": "simulate", "wait_s": 15},
            "_meta": {"progressToken": 7},
        },
    )
    family = begun(workspace)
    server.notify("notifications/cancelled", {"requestId": call, "reason": "changed my mind"})
    assert server.call("verify", candidate_id=candidate)["isError"] is False
    until(lambda: all_gone(family), 15)
    (job,) = workspace.store.jobs.of(candidate)
    assert job.state == "cancelled"
    answers = [json.loads(line) for line in server.lines]
    assert sum(message.get("id") == call and "result" in message for message in answers) == 0
    progress = [m["params"]["progress"] for m in answers if m.get("method") == "notifications/progress"]
    assert progress and progress == sorted(set(progress))


def test_a_cancelled_poll_leaves_the_job_alone(server: BareServer, workspace: Workspace) -> None:
    candidate = propose(server)
    job = start(server, candidate)["job"]["job_id"]
    family = begun(workspace)
    poll = server.begin("tools/call", {"name": "get_job", "arguments": {"job_id": job, "wait_s": 15}})
    server.notify("notifications/cancelled", {"requestId": poll})
    assert server.call("get_job", job_id=job, wait_s=0)["structuredContent"]["job"]["state"] == "running"
    assert not any(processes.gone(owner) for owner in family)


def test_a_job_outlives_its_server_and_its_result_is_found_by_the_next(workspace: Workspace) -> None:
    first = BareServer(workspace.root)
    candidate = propose(first)
    job = start(first, candidate)["job"]["job_id"]
    begun(workspace)
    first.process.send_signal(signal.SIGKILL)
    first.close()
    (workspace.root / "tasks" / "go").touch()
    second = BareServer(workspace.root)
    answer: dict = {}

    def ended() -> bool:
        nonlocal answer
        answer = second.call("get_job", job_id=job, wait_s=15)["structuredContent"]
        return answer.get("job", {}).get("state") not in ("queued", "running")

    until(ended, 120)
    assert "run_id" in answer, answer
    assert start(second, candidate)["run_id"] == answer["run_id"]  # done once, never done again
    second.close()


def test_a_job_whose_process_was_killed_is_done_again_by_whichever_server_is_there(server: BareServer, workspace: Workspace) -> None:
    candidate = propose(server)
    job = start(server, candidate)["job"]["job_id"]
    family = begun(workspace)
    os.kill(int(family[0].rsplit(":", 2)[1]), signal.SIGKILL)
    again = begun(workspace)
    assert again[0] != family[0]
    now = workspace.store.jobs.get(job)
    assert now is not None and (now.state, now.attempts) == ("running", 2)
    server.call("cancel_job", job_id=job)
    until(lambda: all_gone(again), 10)
    os.kill(int(family[1].rsplit(":", 2)[1]), signal.SIGKILL)


def test_a_job_that_takes_too_long_is_ended_with_the_reason(workspace: Workspace) -> None:
    (workspace.root / "cake.toml").write_text("job_seconds = 3\n")
    server = BareServer(workspace.root)
    job = start(server, propose(server))["job"]["job_id"]
    family = begun(workspace)
    until(lambda: all_gone(family), 20)
    answer = server.call("get_job", job_id=job)["structuredContent"]
    assert answer["status"] == "failed" and "job_seconds = 3" in answer["job"]["error"]
    server.close()
