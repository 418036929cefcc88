"""Atoms by the value of an operand: dictionaries that work out what is asked for the first time, so that asking again is one look-up."""

from __future__ import annotations

from typing import Any

from cake_ir.program import Tmem
from cake_verify.analyses.regions import OutsideView, Region, Regions
from cake_verify.analyses.state import Found

UNRINGED = 2**30
"""Slots of what rides on no ring: a number names a stage as it is, and never comes round."""


class Lookup(dict[tuple[int, int, int], Region]):
    """Atoms by a view operand's value (slot count, row, column): those of the `part` (row, rows, column, columns) that starts there.

    Raises `Found` where there is nothing: in front of the first slot (of a ring that is `phased`), behind the last of the stages that the
    view has, or outside its rows and columns.
    """

    __slots__ = ("have", "part", "phased", "regions", "stages", "view")

    def __init__(self, regions: Regions, view: str, stages: int, have: int, phased: bool, part: tuple[int, int, int, int]) -> None:
        self.regions, self.view, self.stages, self.have, self.phased, self.part = regions, view, stages, have, phased, part

    def __missing__(self, at: tuple[int, int, int]) -> Region:
        n, row, col = at
        if n < 0 and self.phased:
            raise Found("S031", view=self.view, slot=n)
        stage = n % self.stages
        found = self[at] = self._atoms(stage, row, col) if stage == n else self[stage, row, col]
        return found

    def _atoms(self, stage: int, row: int, col: int) -> Region:
        if stage >= self.have:
            raise Found("S032", view=self.view, stage=stage, ring=self.stages != UNRINGED)
        down, rows, across, cols = self.part
        try:
            return self.regions.region(self.view, stage, row + down, rows, col + across, cols)
        except OutsideView as e:
            raise Found("S032", view=self.view, row=e.row, rows=e.rows, col=e.col, cols=e.cols) from e


class Columns(dict[Any, Region]):
    """Atoms by a tensor-memory value, its first column (of scales there: with the first one's number): those of `cols` columns from there on.

    Raises `Found` where the region has no such columns."""

    __slots__ = ("cols", "regions", "tmem")

    def __init__(self, regions: Regions, tmem: Tmem, cols: int) -> None:
        self.regions, self.tmem, self.cols = regions, tmem, cols

    def __missing__(self, at: Any) -> Region:
        first, width, lanes = at[0] if isinstance(at, tuple) else at, self.tmem.width, max(1, self.tmem.shape[1])
        if not isinstance(at, tuple) and (first < 0 or first + self.cols > lanes):
            raise Found("S032", tmem=self.tmem.name, col=first, cols=self.cols)
        found = self[at] = self.regions.columns(self.tmem.col + first * width // lanes, max(1, self.cols * width // lanes))
        return found


__all__ = ["UNRINGED", "Columns", "Lookup"]
