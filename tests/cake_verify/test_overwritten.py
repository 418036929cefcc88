"""Members that store to one place in turn: what one leaves is read before the next writes, or lost."""

from __future__ import annotations

from pathlib import Path

from cake_verify import verify_text

TURNS = (Path(__file__).resolve().parents[2] / "bench" / "verify" / "corpus" / "decode_by_warps.py").read_text("utf-8")
ADDED = "                        smem_o.store(smem_o.load(form=\"acc\") + o)\n"


def errors(text: str) -> list[tuple[str, str, int]]:
    return [(d.code, d.message, d.span.line) for d in verify_text(text, suggest=False).errors]


def test_members_that_add_to_what_they_find_pass() -> None:
    assert TURNS.count(ADDED) == 1 and errors(TURNS) == []


def test_members_that_write_over_each_other_are_told_where() -> None:
    arms = "                    if j == 0:\n                        smem_o.store(o)\n                    else:\n" + ADDED
    assert TURNS.count(arms) == 1
    ((code, message, line),) = errors(TURNS.replace(arms, "                    smem_o.store(o)\n"))
    assert code == "S028" and "store to the same bytes of `smem_o` one after the other" in message
    assert line == 1 + TURNS[: TURNS.index(arms)].count("\n")


def test_a_first_member_alone_may_write_over_what_is_there() -> None:
    twice = TURNS.replace(ADDED, "                        pass\n")
    assert "one after the other" not in str(errors(twice))
