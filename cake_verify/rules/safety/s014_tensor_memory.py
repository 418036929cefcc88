"""S014: tensor-memory loads are used before they are complete."""

from __future__ import annotations

from cake_verify.rule import Page
from cake_verify.rules.examples import TENSOR_MEMORY, edit

PAGE = Page(
    code="S014",
    title="tensor-memory moves are used before they are complete",
    statement='What `lm.tmem_load` brings is used after `lm.tmem_wait("ld")`, and what `lm.tmem_store` writes is handed over after `lm.tmem_wait("st")`.',
    why="Both are asynchronous: registers are filled, and columns written, some time after the instruction.",
    failing=edit(TENSOR_MEMORY, ('        lm.tmem_wait("ld")\n', "")),
    passing=TENSOR_MEMORY,
    sources=("HW085",),
)
