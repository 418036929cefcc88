"""Two servers on one workspace: one queue, one evaluation at a time, results for both."""

import json
from pathlib import Path

import pytest
from mcp_clients import BareServer

import cake_kernels
from cake_mcp import workspace as workspaces

RMSNORM = next(s.text for s in cake_kernels.schedules() if s.family == "rmsnorm")


@pytest.mark.parametrize("parallel", [1, 2])
def test_jobs_of_both_are_done_once_each_and_never_more_at_a_time_than_the_workspace_allows(tmp_path: Path, parallel: int) -> None:
    workspace = workspaces.create(tmp_path / ".cake")
    (workspace.root / "cake.toml").write_text(f"parallel_jobs = {parallel}\n")
    servers = [BareServer(workspace.root), BareServer(workspace.root)]
    jobs = []
    for number in range(3):
        server = servers[number % 2]
        proposed = server.call("propose_candidate", text=RMSNORM, task="rmsnorm", rationale=str(number), params={"D": 2048 * (number + 1)})
        candidate = proposed["structuredContent"]["candidate_id"]
        answer = server.call("compile_and_run", candidate_id=candidate, device="simulate", wait_s=0)["structuredContent"]
        again = servers[1 - number % 2].call("compile_and_run", candidate_id=candidate, device="simulate", wait_s=0)["structuredContent"]
        assert "job" not in again or again["job"]["job_id"] == answer["job"]["job_id"]
        jobs.append(answer["job"]["job_id"])
    for job in jobs:
        for server in servers:
            answer: dict = {"job": {"state": "queued"}}
            while answer.get("job", {}).get("state") in ("queued", "running"):
                answer = server.call("get_job", job_id=job, wait_s=15)["structuredContent"]
            assert "run_id" in answer, json.dumps(answer)
    rows = [job for job in workspace.store.jobs.in_state("done")]
    assert sorted(job.id for job in rows) == sorted(jobs) and all(job.attempts == 1 for job in rows)
    moments = sorted([(job.started, 1) for job in rows] + [(job.finished, -1) for job in rows], key=lambda m: (m[0], m[1]))
    running = most = 0
    for _, change in moments:
        running += change
        most = max(most, running)
    assert most <= parallel
    for server in servers:
        server.close()
    workspace.store.close()
