"""N050: a slot of another ring."""

from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

PAGE = Page(
    code="N050",
    title="a slot of another ring",
    statement="A slot is used with barriers that ride its own ring.",
    why="Positions of different rings count different things; the phase would be that of another barrier.",
    failing=edit(
        LOOP,
        ("    kt = lm.cdiv(K, 64)", "    other = lm.pipeline(stages=2)\n    kt = lm.cdiv(K, 64)"),
        ("                s = lm.step(ring)\n                lm.wait(full", "                s = lm.step(other)\n                lm.wait(full"),
    ),
    passing=LOOP,
)
