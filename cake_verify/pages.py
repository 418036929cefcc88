"""The pages of all codes as a folder of Markdown files: `python -m cake_verify.pages FOLDER` writes it."""

from __future__ import annotations

import sys
from pathlib import Path

from cake_verify.diagnostic import gate_of
from cake_verify.rule import pages


def files() -> dict[str, str]:
    """Contents by file name: one page a code, and `README.md` with the list of all."""
    found = pages()
    rows = [f"| [{code}]({code}.md) | {gate_of(code)} | {page.severity} | {page.title} |" for code, page in sorted(found.items())]
    index = "\n".join(["# Diagnostic codes", "", "Generated from `cake_verify/rules/`; `cake explain CODE` prints the same pages.", "",
                       "| code | gate | severity | what |", "|---|---|---|---|", *rows, ""])  # fmt: skip
    return {"README.md": index, **{f"{code}.md": page.to_markdown() for code, page in found.items()}}


def write(folder: Path) -> None:
    """Write all files, and remove pages of codes that are gone."""
    wanted = files()
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.md"):
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/codes"))
