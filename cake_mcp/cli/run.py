"""`cake run FILE --task TASK`: compile and judge a schedule, and keep the evidence in the workspace."""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import workspace as workspaces
from ..operations.misuse import Misuse
from .arguments import BAD_USAGE, Parser, add_program_options, add_workspace_option, assignments, read_text

if TYPE_CHECKING:
    from ..store import Job

INFRASTRUCTURE = 2


def main(argv: Sequence[str]) -> int:
    """Exit status: 0 passed, 1 the kernel did not pass, 2 there is no result, 3 bad usage."""
    parser = Parser(prog="cake run", description="Compile a schedule for its exact target and judge it: numbers, then time.")
    parser.add_argument("file", help="a schedule; - reads standard input")
    parser.add_argument("--task", required=True, help="what to judge it on: gemm, kmeans_assign, rmsnorm, or a task of the workspace")
    parser.add_argument("--device", choices=("auto", "gpu", "simulate"), default="auto")
    parser.add_argument("--no-timing", action="store_true", help="check the numbers only")
    parser.add_argument("--again", action="store_true", help="evaluate anew although it has been done")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    add_program_options(parser)
    add_workspace_option(parser)
    options = parser.parse_args(argv)
    try:
        params = assignments(options.param)
        text = read_text(options.file)
        workspace = workspaces.locate_or_create(options.workspace)
        return _run(workspace, text, params, options)
    except argparse.ArgumentTypeError as error:
        parser.error(str(error))
    except OSError as error:
        parser.error(f"{options.file}: {error.strerror}")
    except (Misuse, UnicodeDecodeError, workspaces.WorkspaceError) as error:
        print(f"cake run: {error}", file=sys.stderr)
        return BAD_USAGE


def _run(workspace: workspaces.Workspace, text: str, params: dict, options: argparse.Namespace) -> int:
    from ..jobs.dispatcher import wait
    from ..operations import evaluate
    from ..operations.diagnose import diagnose
    from ..operations.propose import Proposal, propose
    from ..state import ServerState
    from ..store.encoding import plain
    from ..tools import compile_and_run

    state = ServerState(workspace, proposer="command line")
    proposed = propose(
        workspace, Proposal(text=text, params=params, target=options.target or "", task=options.task, proposer=state.proposer)
    )
    job, _ = evaluate.submit(
        workspace,
        proposed.candidate,
        task=options.task,
        device=options.device,
        options={"timing": not options.no_timing},
        again=options.again,
    )
    state.dispatcher.wake()
    try:
        ended = wait(lambda: workspace.store.jobs.get(job.id), float("inf"), _tell)
    except KeyboardInterrupt:
        state.dispatcher.cancel(job.id)
        print(f"cake run: {job.id} cancelled", file=sys.stderr)
        return 130
    finally:
        state.dispatcher.stop()
    assert ended is not None
    answer = compile_and_run.answer_for(state, ended)
    if options.format == "json":
        record = workspace.store.runs.get(ended.run) if ended.run else None
        print(json.dumps(plain(record.body if record else answer.model_dump(exclude_none=True)), ensure_ascii=False, indent=2))
    else:
        print(compile_and_run.text(answer))
        if answer.run_id:
            for finding in diagnose(workspace, run=answer.run_id).findings[:3]:
                where = f" line {finding['line']}" if finding["line"] else ""
                print(f"[{finding['id']}]{where} {finding['claim']}\n      {finding['route']}: {finding['edit']}")
            print(f"evidence: {workspace.root / 'runs' / answer.run_id}")
    return INFRASTRUCTURE if answer.run_id is None else 0 if answer.ok else 1


def _tell(job: "Job") -> None:
    print(f"{job.id} {job.state}" + (f": {job.stage} {job.progress:.0%}" if job.stage else ""), file=sys.stderr)
