"""Outputs that a request names and nobody writes."""

from __future__ import annotations

from cake_verify.gates import verify_text
from cake_verify.rules.examples import COPY

TWO = COPY.replace("Y: LM.gmem1d[LM.f32]", "Y: LM.gmem1d[LM.f32], Z: LM.gmem1d[LM.f32]")
BOTH = {"Y": "an output", "Z": "an output"}


def test_an_output_that_is_asked_for_is_written() -> None:
    (error,) = verify_text(TWO, outputs=BOTH).errors
    assert (error.code, error.facts["tensor"]) == ("Q013", "Z") and error.message == "nothing writes `Z`, an output"


def test_who_does_not_ask_gets_a_warning() -> None:
    verdict = verify_text(TWO)
    assert verdict.verdict == "pass" and [d.code for d in verdict.diagnostics if d.severity == "warning"] == ["Q003"]


def test_what_the_schedule_has_not_got_and_what_it_writes_are_no_matter() -> None:
    assert not verify_text(COPY, outputs=BOTH).errors
    assert not verify_text(TWO.replace("lm.store(Y, x, coords=(0,))", "lm.store(Y, x, coords=(0,))\n        lm.store(Z, x, coords=(0,))"), outputs=BOTH).errors


def test_where_something_else_is_wrong_that_is_told() -> None:
    text = TWO.replace("        lm.store(Y, x, coords=(0,))\n", "        pass\n")
    assert [d.code for d in verify_text(text, outputs=BOTH).errors] == ["S036"]
