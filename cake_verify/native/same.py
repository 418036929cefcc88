"""Whether two forms of the verifier answer alike: every schedule at hand, every rule's two examples, and schedules with a line left out.

    python -m cake_verify.native.same [ROOT]     answers, one line a text, to compare with another process's
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from cake_ir.native import form
from cake_verify import verify_text
from cake_verify.rule import ROOMS, room

SCHEDULES = ("bench/verify/corpus/*.py", "cake_kernels/*/hopper*.py", "cake_kernels/*/ampere*.py", "tests/examples/*.py", "tests/cake_verify/schedules/*.py")
LEFT_OUT = 4
"""Lines of a schedule that are left out, one at a time, evenly over its text: most of these texts have a fault of their own."""


def texts(root: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Name, text and tunables of everything that is asked."""
    for name in ROOMS:
        for rule in room(name):
            yield f"{rule.page.code} failing", rule.page.failing, dict(rule.page.params)
            yield f"{rule.page.code} passing", rule.page.passing, {}
    for pattern in SCHEDULES:
        for path in sorted(root.glob(pattern)):
            text = path.read_text("utf-8")
            yield path.name, text, {}
            lines = text.splitlines(keepends=True)
            for k in range(LEFT_OUT):
                at = len(lines) // 3 + k * (len(lines) * 2 // 3) // LEFT_OUT
                yield f"{path.name} without line {at + 1}", "".join(lines[:at] + lines[at + 1 :]), {}


def answer(text: str, params: dict[str, Any]) -> str:
    """All that the verifier says of a text, but how long it took."""
    said = verify_text(text, params=params).to_json(None)
    del said["elapsed_ms"]
    return json.dumps(said, sort_keys=True, default=str)


def main() -> None:
    """Print which form runs, then a line a text: its name, its verdict, and the hash of the whole answer."""
    print(form())
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path.cwd()
    for name, text, params in texts(root):
        said = answer(text, params)
        print(f"{name}\t{json.loads(said)['verdict']}\t{sha256(said.encode()).hexdigest()}")


if __name__ == "__main__":
    main()
