"""The command line, as processes: output and exit status."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import cake_kernels
from cake_mcp.cli import main

GEMM = next(s.path for s in cake_kernels.schedules() if s.family == "gemm" and s.name == "hopper")
CONTRACT = {"file", "verdict", "diagnostics", "elapsed_ms"}
DIAGNOSTIC = {"code", "gate", "severity", "message", "span", "related", "trace", "help", "fixes"}
SPAN = {"line", "column", "end_line", "end_column"}


def cake(*arguments: str, folder: Path, text: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name != "CAKE_WORKSPACE"}
    return subprocess.run(
        [sys.executable, "-m", "cake_mcp", *arguments], input=text, capture_output=True, text=True, cwd=folder, timeout=120,
        env={**clean, **environment},
    )  # fmt: skip


def bad(folder: Path) -> Path:
    path = folder / "bad.py"
    path.write_text(GEMM.read_text("utf-8").replace("                lm.fence_proxy()\n", ""))
    return path


def test_verify_prints_the_contract_and_needs_no_workspace(tmp_path: Path) -> None:
    done = cake("verify", str(bad(tmp_path)), "--format", "json", folder=tmp_path)
    assert done.returncode == 1 and done.stderr == ""
    body = json.loads(done.stdout)
    assert set(body) >= CONTRACT and body["verdict"] == "fail"
    for diagnostic in body["diagnostics"]:
        assert set(diagnostic) >= DIAGNOSTIC and set(diagnostic["span"]) == SPAN
        for fix in diagnostic["fixes"]:
            assert fix["grade"] in ("certain", "likely", "idea")
            assert all(set(edit) == {"span", "text"} for edit in fix["edits"])
    assert not list(tmp_path.glob(".cake*"))


def test_several_files_give_one_object_a_line_and_the_worst_status(tmp_path: Path) -> None:
    undecided = tmp_path / "anywhere.py"
    undecided.write_text(GEMM.read_text("utf-8").replace('@cake.schedule(target="sm_90a")', "@cake.schedule()"))
    files = [str(GEMM), str(undecided), str(bad(tmp_path))]
    done = cake("verify", "--format", "jsonl", *files, folder=tmp_path)
    bodies = [json.loads(line) for line in done.stdout.splitlines()]
    assert [body["file"] for body in bodies] == files
    assert [body["verdict"] for body in bodies] == ["pass", "undecided", "fail"]
    assert done.returncode == 1
    assert cake("verify", *files[:2], folder=tmp_path).returncode == 2
    assert cake("verify", files[0], folder=tmp_path).returncode == 0
    assert cake("verify", files[1], "--target", "sm_90a", folder=tmp_path).returncode == 0


def test_verify_for_all_targets_says_where_it_runs_why_not_and_what_would_do(tmp_path: Path) -> None:
    ring = next(s.path for s in cake_kernels.schedules() if s.family == "rmsnorm" and s.name == "hopper_ring_warps")
    done = cake("verify", str(ring), "--targets", "all", folder=tmp_path)
    assert done.returncode == 1 and "passes for sm_90a, sm_100a, sm_103a of 7 targets" in done.stdout
    assert "sm_120a  fail" in done.stdout and "passes with: STAGES=3 in place of 4" in done.stdout and "[H001]" in done.stdout
    body = json.loads(cake("verify", str(ring), "--targets", "sm_90a,sm_120a", "--format", "jsonl", folder=tmp_path).stdout)
    assert set(body["targets"]) == {"sm_90a", "sm_120a"} and body["targets"]["sm_120a"]["change"]["params"] == {"STAGES": 3}
    assert cake("verify", str(ring), "--targets", "sm_90a", folder=tmp_path).returncode == 0
    assert cake("verify", str(ring), "--targets", "sm_90a", "-P", "STAGES=3", folder=tmp_path).returncode == 0
    wrong = cake("verify", str(ring), "--targets", "sm_9", folder=tmp_path)
    assert wrong.returncode == 3 and "did you mean" in wrong.stderr


def test_a_parameter_can_be_set_and_a_wrong_one_is_located(tmp_path: Path) -> None:
    assert cake("verify", str(GEMM), "-P", "STAGES=3", folder=tmp_path).returncode == 0
    done = cake("verify", str(GEMM), "-P", "STAGES=900", "--format", "json", folder=tmp_path)
    assert done.returncode == 1 and json.loads(done.stdout)["diagnostics"][0]["span"]["line"] > 1


def test_repair_prints_edits_that_verify_and_what_was_not_checked(tmp_path: Path) -> None:
    done = cake("verify", str(bad(tmp_path)), "--repair", "--format", "json", folder=tmp_path)
    body = json.loads(done.stdout)
    assert done.returncode == 1 and body["repair"]["fixes"] and body["repair"]["tried"] >= 1 and "none was checked" in body["repair"]["caveat"]
    lines = bad(tmp_path).read_text("utf-8").split("\n")
    (edit,) = body["repair"]["fixes"][0]["edits"]
    row, column = edit["span"]["line"] - 1, edit["span"]["column"] - 1
    assert edit["span"]["line"] == edit["span"]["end_line"] and edit["span"]["column"] == edit["span"]["end_column"]
    lines[row] = lines[row][:column] + edit["text"] + lines[row][column:]
    assert cake("verify", "-", folder=tmp_path, text="\n".join(lines)).returncode == 0
    told = cake("verify", str(bad(tmp_path)), "--repair", folder=tmp_path)
    assert told.returncode == 1 and "repair search: " in told.stdout and "none was checked for what the kernel computes" in told.stdout
    assert "repair" not in json.loads(cake("verify", str(bad(tmp_path)), "--format", "json", folder=tmp_path).stdout)


def test_text_can_come_from_standard_input(tmp_path: Path) -> None:
    done = cake("verify", "-", folder=tmp_path, text=GEMM.read_text("utf-8"))
    assert done.returncode == 0 and "pass" in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["verify"],
        ["verify", "missing.py"],
        ["verify", "x.py", "--format", "xml"],
        ["verify", "x.py", "-P", "=3"],
        ["verify", "x.py", "--extent", "M=large"],
        ["verify", "x.py", "--workspace", "nowhere"],
        ["verify", "x.py", "--repair", "--repair-seconds", "0"],
        ["verify", "x.py", "--repair-seconds", "nan"],
        ["explain", "X999"],
        ["run", "x.py"],
        ["rank", "x.py", "--task", "nothing"],
        ["review", "p_nothing"],
        ["serve", "--transport", "carrier-pigeon"],
        ["bake"],
        [],
    ],
)
def test_bad_usage_is_status_three_and_one_readable_message(
    tmp_path: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CAKE_WORKSPACE", raising=False)
    (tmp_path / "x.py").write_text(GEMM.read_text("utf-8"))
    try:
        status = main(arguments)
    except SystemExit as left:
        status = left.code
    told = capsys.readouterr()
    assert status == 3
    assert "Traceback" not in told.err and (told.err or told.out)


def test_explain_knows_every_code_that_a_verdict_gives(tmp_path: Path) -> None:
    body = json.loads(cake("verify", str(bad(tmp_path)), "--format", "json", folder=tmp_path).stdout)
    for code in {diagnostic["code"] for diagnostic in body["diagnostics"]}:
        done = cake("explain", code, folder=tmp_path)
        assert done.returncode == 0 and code in done.stdout


def test_run_judges_in_the_simulator_and_keeps_the_evidence(tmp_path: Path) -> None:
    rmsnorm = next(s.path for s in cake_kernels.schedules() if s.family == "rmsnorm")
    done = cake("run", str(rmsnorm), "--task", "rmsnorm", "--device", "simulate", "--format", "json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["status"] == "PASSED_UNTIMED" and record["evidence"] == "simulated"
    assert record["numerics"]["label"] == "simulated" and record["compile"]["label"] == "compiled"
    (folder,) = (tmp_path / ".cake" / "runs").iterdir()
    assert {"kernel.cu", "kernel.cubin", "manifest.json", "record.json"} <= {path.name for path in folder.iterdir()}


def test_run_says_no_to_a_kernel_that_the_gates_reject(tmp_path: Path) -> None:
    done = cake("run", str(bad(tmp_path)), "--task", "gemm", "--device", "simulate", folder=tmp_path)
    assert done.returncode == 1 and "STATIC_REJECT" in done.stdout
    (folder,) = (tmp_path / ".cake" / "runs").iterdir()
    assert not (folder / "kernel.cubin").exists()


def test_rank_orders_variants_without_leaving_a_workspace_behind(tmp_path: Path) -> None:
    done = cake("rank", str(GEMM), "--task", "gemm", "--sweep", "STAGES=2,4", "--format", "json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    body = json.loads(done.stdout)
    order = [body["names"][identifier].rpartition(" ")[2] for group in body["groups"] for identifier in group["tied"]]
    assert order == ["STAGES=4", "STAGES=2"]
    assert body["label"] == "predicted" and not list(tmp_path.iterdir())


def test_doctor_says_what_happens_without_a_gpu(tmp_path: Path) -> None:
    done = cake("doctor", "--format", "json", folder=tmp_path)
    findings = {finding["name"]: finding for finding in json.loads(done.stdout)}
    assert findings["nvrtc"]["ok"] and done.returncode == 0
    if not findings["gpu"]["ok"]:
        assert "simulator" in findings["gpu"]["consequence"]


def test_init_makes_the_folders_and_is_found_from_below(tmp_path: Path) -> None:
    assert cake("init", folder=tmp_path).returncode == 0
    assert {"rules", "tactics", "calibrations", "primitives", "tasks", "cake.db"} <= {p.name for p in (tmp_path / ".cake").iterdir()}
    (tmp_path / "below").mkdir()
    done = cake("review", folder=tmp_path / "below")
    assert done.returncode == 0 and "0 waiting" in done.stdout


def test_the_verify_command_imports_no_heavy_package(tmp_path: Path) -> None:
    script = (
        "import sys; from cake_mcp.cli import main\n"
        f"main(['verify', {str(GEMM)!r}])\n"
        "print([n for n in ('numpy', 'pydantic', 'mcp', 'anyio', 'sqlite_utils', 'sqlite3', 'asyncio', 'typer') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_every_code_is_explained_by_the_page_that_is_in_the_repository(capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(__file__).resolve().parents[3] / "docs" / "codes"
    codes = sorted(p.stem for p in folder.glob("*.md") if p.stem != "README")
    assert len(codes) > 140
    for code in codes:
        assert main(["explain", code]) == 0
        assert capsys.readouterr().out.rstrip("\n") == (folder / f"{code}.md").read_text("utf-8").rstrip("\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("verify", str(GEMM), "--extent", "MM=4"), "--extent MM: the schedule has no such run-time argument"),
        (("verify", str(GEMM), "--extent", "M=a"), "--extent M must be an integer"),
        (("explain", "HW999"), "no code `HW999`"),
    ],
)
def test_a_name_that_does_not_exist_is_bad_usage(arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        status = main(arguments)
    except SystemExit as ended:
        status = ended.code
    assert status == 3 and said in capsys.readouterr().err


def test_a_target_that_does_not_exist_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(("verify", str(GEMM), "--target", "sm_90")) == 1
    assert "target `sm_90` is not one of the seven names" in capsys.readouterr().out


def test_a_hardware_contract_is_explained_with_the_rules_that_hold_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(("explain", "hw071")) == 0
    told = capsys.readouterr().out
    assert told.startswith("# HW071") and "`S003` (a write may come before earlier accesses have ended)" in told
