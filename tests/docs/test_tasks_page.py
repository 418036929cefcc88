"""`docs/tasks.md`: its task and its schedule are what it says they are."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "tasks.md").read_text("utf-8")
TASK, SCHEDULE = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize(
    ("schedule", "status", "said"),
    [(SCHEDULE, 0, "PASSED_UNTIMED (simulated)"), (SCHEDULE.replace("0.044715", "0.054715"), 1, "INCORRECT_NUMERICAL")],
)
def test_the_schedule_of_the_page_is_judged_by_the_task_of_the_page(tmp_path: Path, schedule: str, status: int, said: str) -> None:
    (tmp_path / ".cake" / "tasks").mkdir(parents=True)
    (tmp_path / ".cake" / "tasks" / "bias_gelu.py").write_text(TASK)
    (tmp_path / "bias_gelu.py").write_text(schedule)
    call = [sys.executable, "-m", "cake_mcp", "run", "bias_gelu.py", "--task", "bias_gelu", "--device", "simulate", "--workspace", ".cake"]
    done = subprocess.run(call, capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert (done.returncode, said in done.stdout) == (status, True), done.stdout + done.stderr
