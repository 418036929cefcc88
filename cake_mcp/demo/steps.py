"""What happens in the demo: a Hopper GEMM with two faults becomes a fast one, and its fault becomes a rule that waits for a person."""

import sqlite3
from pathlib import Path
from typing import Any

from .agent import Agent
from .transcript import Transcript, WrongAnswer

FENCE = "                lm.fence_proxy()\n"
RELEASE = "lm.arrive(ab_empty, stage=s.prev())"
WRONG_RELEASE = "lm.arrive(ab_empty, stage=s)"
MAX_REPAIRS = 4
VARIANTS: tuple[dict[str, Any], ...] = ({"STAGES": 2}, {"STAGES": 3}, {"BN": 128}, {"GROUP": 4})

RULE = {
    "title": "staged tile leaves without a proxy fence",
    "statement": (
        "A TMA store reads shared memory through the async proxy. Ordinary writes of the same view by the issuing role must be followed by "
        "lm.fence_proxy() before the store is issued, or the store may send stale bytes."
    ),
    "sql": """
SELECT s.line, s.column, s.view AS detail FROM op s
WHERE s.name = 'tma_store' AND EXISTS (
  SELECT 1 FROM op w JOIN effect e ON e.op = w.id
  WHERE w.role = s.role AND w.seq < s.seq AND e.space = 'smem' AND e.proxy = 'generic' AND e.mode LIKE '%w%' AND e.view = s.view
    AND NOT EXISTS (SELECT 1 FROM op f WHERE f.role = s.role AND f.name = 'fence_proxy' AND f.seq BETWEEN w.seq AND s.seq))
""",
    "message": "`{detail}` is written by ordinary stores and sent by TMA with no fence_proxy between",
    "help": "put lm.fence_proxy() behind the writes, in front of the sync that precedes the store",
}


def rule_arguments() -> dict[str, Any]:
    """The check that is proposed."""
    return dict(RULE)


def faulty_gemm() -> str:
    """The corpus's Hopper GEMM without its proxy fence and with one release a slot too early."""
    import cake_kernels

    text = next(s.text for s in cake_kernels.schedules() if s.family == "gemm" and s.name == "hopper")
    if text.count(FENCE) != 1 or text.count(RELEASE) != 1:
        raise WrongAnswer("the corpus's GEMM is not the one that the demo knows")
    return text.replace(FENCE, "").replace(RELEASE, WRONG_RELEASE)


async def run(agent: Agent, transcript: Transcript, workspace: Path) -> None:
    """The whole transcript."""
    transcript.step("An agent connects")
    names = await agent.tools()
    transcript.answer([", ".join(names)])
    transcript.expect({"propose_candidate", "verify", "rank", "compile_and_run", "diagnose", "propose_rule"} <= set(names), "the six tools")

    transcript.step("It proposes a Hopper GEMM in which one fence and one release are wrong")
    broken = await agent.call("propose_candidate", text=faulty_gemm(), task="gemm", rationale="warp-specialised, four stages")
    transcript.expect(broken["verdict"] == "fail", "a rejection")
    first = next(d for d in broken["diagnostics"] if d["severity"] == "error")
    transcript.expect(
        first["gate"] == "safety" and first["span"]["line"] > 1, f"it is located: gate {first['gate']}, line {first['span']['line']}"
    )
    transcript.expect(not _jobs(workspace), "nothing was compiled for that")

    transcript.step("It applies the fixes that the findings carry, as they are")
    good = await _repair(agent, transcript, broken)
    transcript.expect(good["verdict"] == "pass", "every gate passes")

    transcript.step("It proposes variants: a parent and a few numbers")
    ids = [good["candidate_id"]]
    for params in VARIANTS:
        variant = await agent.call("propose_candidate", parent=good["candidate_id"], params=params, rationale=f"try {params}")
        transcript.expect(variant["verdict"] == "pass", f"{params} passes the gates")
        ids.append(variant["candidate_id"])

    transcript.step("It ranks them; nothing is run for that")
    ranked = await agent.call("rank", candidate_ids=ids, task="gemm", budget=2)
    group = {place["candidate_id"]: place.get("group") for place in ranked["places"]}
    transcript.expect(all(group.values()) and ranked["evidence"] == "predicted", "all are ranked, and every figure is called predicted")
    transcript.expect(group[ids[1]] > group[ids[0]], "two stages are found slower than four")

    transcript.step("It compiles and runs the best")
    best = ranked["run_these"][0]["candidate_id"]
    result = await _finished(agent, await agent.call("compile_and_run", candidate_id=best, task="gemm"))
    transcript.answer([result["summary"]])
    transcript.expect(result["ok"] and result["status"] in ("PASSED", "PASSED_UNTIMED"), "the numbers agree with the oracle")
    transcript.expect(result["evidence"] in ("measured", "simulated"), f"they are labelled: {result['evidence']}")
    transcript.expect("compile" in result, "it was compiled for the exact target, GPU or not")
    timed = result.get("timing") if result["evidence"] == "measured" else result.get("prediction")
    transcript.expect(bool(timed), "its time is measured" if result["evidence"] == "measured" else "its time is predicted, and called so")

    transcript.step("It asks what bounds it")
    diagnosis = await agent.call("diagnose", run_id=result["run_id"])
    transcript.expect(bool(diagnosis["findings"]), "there is something to say about it")

    transcript.step("It distils the first fault into a check")
    rule = await agent.call("propose_rule", evidence=[broken["candidate_id"]], near_misses=[good["candidate_id"]], **rule_arguments())
    report = rule["report"]
    transcript.note(
        f"trial: {report['corpus']} schedules of the corpus and {report['candidates']} stored candidates, {report['median_ms']} ms each"
    )
    transcript.expect(rule["ok"] and rule["state"] == "pending", "it rejects its evidence and nothing that passed; it waits for a person")
    transcript.expect(report["corpus"] > 0 and not report["wrongly_rejects"], "the corpus stays accepted")

    transcript.step("The evidence is kept")
    transcript.note(f"workspace: {workspace}")
    transcript.note(f"run:       {workspace / 'runs' / result['run_id']}")
    transcript.note(f"decide:    cake review {rule['rule_id']} --workspace {workspace}")
    kept = workspace / "runs" / result["run_id"]
    transcript.expect((kept / "kernel.cu").is_file() and (kept / "kernel.cubin").is_file(), "generated CUDA and cubin are there")


async def _repair(agent: Agent, transcript: Transcript, candidate: dict[str, Any]) -> dict[str, Any]:
    for _ in range(MAX_REPAIRS):
        if candidate["verdict"] == "pass":
            break
        errors = [d for d in candidate["diagnostics"] if d["severity"] == "error"]
        fixes = [fix for d in errors for fix in d["fixes"] if fix["grade"] in ("certain", "likely")]
        if not fixes:
            raise WrongAnswer(f"[{errors[0]['code']}] carries no fix: {errors[0]['message']}")
        edits = [{"span": edit["span"], "text": edit["text"]} for edit in fixes[0]["edits"]]
        candidate = await agent.call(
            "propose_candidate", parent=candidate["candidate_id"], edits=edits, rationale=f"fix of {errors[0]['code']}"
        )
    return candidate


async def _finished(agent: Agent, answer: dict[str, Any]) -> dict[str, Any]:
    while answer.get("job", {}).get("state") in ("queued", "running"):
        answer = await agent.call("get_job", _quiet=True, job_id=answer["job"]["job_id"], wait_s=15)
    return answer


def _jobs(workspace: Path) -> int:
    """How many jobs the workspace has seen, read from the store as anyone may."""
    connection = sqlite3.connect(f"file:{workspace / 'cake.db'}?mode=ro", uri=True)
    try:
        return connection.execute("SELECT count(*) FROM jobs").fetchone()[0]
    finally:
        connection.close()
