"""Tensors of the signature that the body does not name."""

from __future__ import annotations

from cake_verify.gates import verify_text
from cake_verify.rules.examples import COPY

TWO = COPY.replace("Y: LM.gmem1d[LM.f32]", "Y: LM.gmem1d[LM.f32], Z: LM.gmem1d[LM.f32]")


def test_a_tensor_that_nothing_touches_is_told_once() -> None:
    verdict = verify_text(TWO)
    assert [(d.code, d.facts["tensor"]) for d in verdict.errors] == [("Q013", "Z")]
    assert not [d for d in verdict.diagnostics if d.code == "Q003"]


def test_an_input_that_is_only_read_stays_a_warning() -> None:
    verdict = verify_text(TWO.replace("Z: LM.gmem1d[LM.f32]", "Z: LM.gmem1d[LM.f32].const"))
    assert verdict.verdict == "pass" and [d.code for d in verdict.diagnostics if d.severity == "warning"] == ["Q003"]


def test_what_a_tunable_leaves_out_is_named_all_the_same() -> None:
    head, _, body = TWO.partition("    with work:\n")
    optional = head.replace("Z: LM.gmem1d[LM.f32]", "Z: LM.gmem1d[LM.f32], *, BOTH=False") + "    with work:\n" + body.rstrip() + "\n        if BOTH:\n            lm.store(Z, x, coords=(0,))\n"
    assert verify_text(optional).verdict == "pass"
    assert verify_text(optional, params={"BOTH": True}).verdict == "pass"


def test_where_something_else_is_missing_that_is_told() -> None:
    text = TWO.replace("        lm.store(Y, x, coords=(0,))\n", "        pass\n")
    assert "Q013" not in [d.code for d in verify_text(text).errors]
