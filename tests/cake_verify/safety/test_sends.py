"""Sends into a peer's memory: what is wrong with who waits for whom is said of the barrier that frees the slot."""

import pytest

from bench.verify.cases import CASES
from cake_verify import verify_text
from cake_verify.proposals import applied
from cake_verify.rules.examples import edit

WAIT = ("                lm.wait(read, stage=m)\n", "                pass\n")
SCOPE = ('read = lm.barrier(pipeline=mail, prod=[math], cons=[math], arrive="warp", primed=True, scope="cluster")', 'read = lm.barrier(pipeline=mail, prod=[math], cons=[math], arrive="warp", primed=True)')


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (WAIT, "S003", "`inbox.send` overwrites `inbox` without having waited for `read`, on which `math` of CTA 2 releases it"),
        (SCOPE, "S012", "`read` frees slots of `inbox` for this CTA only, but `inbox.send` writes them in another CTA"),
    ],
)
def test_a_send_over_what_is_still_read_is_told_and_mended(change: tuple[str, str], code: str, message: str) -> None:
    text = edit(CASES["gemm_split_send"].text(), change)
    error = verify_text(text).errors[0]
    assert (error.code, error.message) == (code, message)
    assert verify_text(applied(text, error.fixes[0].edits)).verdict == "pass"
