"""S035: a product is lost, or counted where it does not belong."""

from __future__ import annotations

from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

OF_VALUES = True

PAGE = Page(
    code="S035",
    title="products lost or counted twice",
    statement="Every product that an accumulator receives is read before it starts from zero again, it is added once, and what has been stored is not added to; what an accumulator was brought up to date with is not lost to a product that starts from zero.",
    why="`init=` decides which products a sum holds: starting too often throws work away, starting too rarely adds one tile to the next.",
    failing=edit(LOOP, ("init=(k == 0)", "init=True")),
    passing=LOOP,
    limits="A product that is overwritten unread is reported where that happens to at least half of the products of an operation.",
)
