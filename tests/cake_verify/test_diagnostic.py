"""What a finding looks like, for programs and for people."""

import json

from inline_snapshot import snapshot

from cake_ir.fault import Edit, Fault, Fix
from cake_ir.span import Span
from cake_verify import Diagnostic, verify_text
from cake_verify.diagnostic import _fix_text
from cake_verify.rules.examples import TILE, edit


def test_text_shows_the_line_the_mark_and_the_edit():
    text = edit(TILE, ("shape=(128, 64), dtype=lm.bf16, swizzle=\"128b\"", "shape=(128, 64), dtype=lm.bf16"))
    verdict = verify_text(text, filename="tile.py")
    shown = verdict.to_text()
    assert shown[: shown.index("\n\n")] == snapshot("""\
error[D016]: `b` cannot be `b` of this MMA: wgmma reads a swizzled view, this one has no swizzle; declare it with swizzle="128b"
  --> tile.py:19:24
   |
 6 |     b = pool.view(offset=8192, shape=(128, 64), dtype=lm.bf16)
   |         ------------------------------------------------------ declared here
...
14 |         b.tma_load(B, coords=(0, 0), stage=s, barrier=full)
   |         --------------------------------------------------- filled by `tma_load`
...
19 |         lm.mma(acc, a, b, init=True)
   |                        ^
help: the copies and stores that fill the view follow its swizzle by themselves
fix: swizzle by 128b   [grade: certain]
 6 +     b = pool.view(offset=8192, shape=(128, 64), dtype=lm.bf16, swizzle="128b")
   = explain: D016\
""")
    assert shown.splitlines()[-1].startswith("tile.py: fail for sm_90a: 1 error (")


def test_json_has_the_fields_of_the_contract():
    text = edit(TILE, ("offset=8192", "offset=8320"), ("lm.smem(24576)", "lm.smem(25600)"))
    body = verify_text(text, filename="tile.py").to_json()
    assert set(body) == {"file", "verdict", "diagnostics", "elapsed_ms", "target", "schedule", "schedules", "more_errors"}
    assert (body["file"], body["verdict"], body["target"], body["schedule"]) == ("tile.py", "fail", "sm_90a", "tile")
    (found,) = body["diagnostics"]
    assert {"code", "gate", "severity", "message", "span", "related", "trace", "help", "fixes", "facts", "schedule", "target"} == set(found)
    assert (found["code"], found["gate"], found["severity"]) == ("D015", "consistency", "error")
    assert found["span"] == {"line": 6, "column": 26, "end_line": 6, "end_column": 30}
    assert found["fixes"][0]["edits"] == [{"span": found["span"], "text": "8192"}]
    assert found["fixes"][0]["grade"] in ("certain", "likely", "idea")


def test_columns_count_characters():
    text = edit(TILE, ("lm.wait(full, stage=s)", "lm.wait(fool, stage=s)")).replace("def tile(", "def tile(").replace(
        "        lm.wait(fool", "        x = 1; s2 = 'äöü€𝄞'; lm.wait(fool"
    )
    (found,) = verify_text(text).errors
    line = verify_text(text).lines[found.span.line - 1]
    assert line[found.span.column - 1 : found.span.end_column - 1] == "fool"


def test_the_mark_stands_under_the_text_behind_wide_characters():
    text = "# äöü\n" + edit(TILE, ("lm.wait(full", "lm.wait(fool"))
    block = verify_text(text).to_text().split("\n")
    at = next(i for i, line in enumerate(block) if "^^^^" in line)
    assert block[at - 1][block[at].index("^") :].startswith("fool")


def test_control_characters_do_not_reach_the_terminal():
    verdict = verify_text(edit(TILE, ("lm.wait(full, stage=s)", "lm.wait(fool, stage=s)  # \x1b[31m \u202e")), filename="a\x1b[0m.py")
    assert "\x1b" not in verdict.diagnostics[0].to_text(verdict.lines, verdict.file) and "\u202e" not in verdict.to_text()


def test_a_long_line_is_cut():
    text = edit(TILE, ("lm.wait(full, stage=s)", "lm.wait(fool, stage=s)  # " + "x" * 5000))
    assert max(map(len, verify_text(text).to_text().split("\n"))) < 400


def test_facts_are_plain_json():
    fault = Fault("D001", "m", Span(1, 1, 1, 2), facts={"a": float("inf"), "b": (1, 2), "c": {"d": {3}}, "e": float("nan"), "f": object})
    body = Diagnostic.from_fault(fault).to_json()
    json.dumps(body, allow_nan=False)
    assert body["facts"]["a"] == "inf" and body["facts"]["b"] == [1, 2]


def test_an_edit_over_lines_is_shown_whole():
    fix = Fix((Edit(Span(1, 3, 2, 2), "X\n  Y"),), "likely", "join")
    d = Diagnostic.from_fault(Fault("D001", "m", Span(1, 1, 1, 2), fixes=(fix,)))
    assert "1 + abX\n2 +   Yef" in d.to_text(["abcd", "def"], "f")


def test_a_trace_is_printed_step_by_step():
    d = Diagnostic.from_fault(Fault("S023", "m", Span(1, 1, 1, 2), trace=("first", "second")))
    text = d.to_text(["abc"], "f")
    assert "= trace: first" in text and "=      : second" in text


def test_edits_of_one_line_are_shown_as_one_line() -> None:
    text = "    lm.store(Y, x, coords=(a, b))"
    at = [Span(1, 28, 1, 29), Span(1, 31, 1, 32)]
    shown = _fix_text(Fix((Edit(at[0], "b"), Edit(at[1], "a")), "idea", "exchange them"), [text], 3)
    assert shown[1:] == ["  1 +     lm.store(Y, x, coords=(b, a))"]
