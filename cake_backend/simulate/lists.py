"""Running sorted lists: the best k (value, index) pairs of each row, equal values by the lowest index, no NaN.

A list is kept merged over the lanes that share its rows: merging in any order gives the same pairs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cake_backend.simulate.elementwise import Builder, Value, build, frag_type, grid
from cake_backend.simulate.faults import Abort, NotSimulated
from cake_backend.simulate.floats import Array
from cake_backend.simulate.machine import Site, Vals
from cake_backend.simulate.registers import shape_of
from cake_backend.simulate.state import Warp
from cake_ir.program import Expr
from cake_ir.types import ListT


def list_type(e: Expr) -> ListT:
    assert isinstance(e.type, ListT)
    return e.type


def best(value: Array, index: Array, k: int, largest: bool) -> tuple[Array, Array]:
    """The first k pairs of each row in the order of the language."""
    key = -value if largest else value
    order = np.lexsort((index, key), axis=1)[:, :k]
    return np.take_along_axis(value, order, 1), np.take_along_axis(index, order, 1)


def _topk_list(site: Site, e: Expr) -> Value:
    t = list_type(e)
    worst = np.float32(-np.inf if t.largest else np.inf)
    finished = t.value.with_(partial=None)

    def make(warp: Warp, vals: Vals) -> Any:
        rows = shape_of(finished, site.width, warp.warp)[0]
        return np.full((rows, t.k), worst), np.full((rows, t.k), -1, np.int32)

    return make


def _topk(site: Site, e: Expr) -> Value:
    given = e.attrs.get("operands")
    names = [str(n) for n in given] if isinstance(given, tuple) else ["x", "base", "into"]
    args = dict(zip(names, e.args, strict=True))
    t, x = list_type(e), frag_type(args["x"])
    if x.form not in ("acc", "a") or (x.warps or (1, 1))[1] > 1:
        raise NotSimulated(f"`topk` of {x}", e.span)
    scores_of, base_of, into_of = build(site, args["x"]), build(site, args["base"]), build(site, args["into"])
    columns = [h.cols[0] for h in grid(site, x)]
    worst = np.float32(-np.inf if t.largest else np.inf)

    def run(warp: Warp, vals: Vals) -> Any:
        scores = np.asarray(scores_of(warp, vals), np.float32)
        value, index = into_of(warp, vals)
        where = np.broadcast_to((columns[warp.warp] + int(base_of(warp, vals))).astype(np.int32), scores.shape)
        never = np.isnan(scores) | (scores == worst)
        scores, where = np.where(never, worst, scores), np.where(never, np.int32(2**31 - 1), where)
        value, index = best(np.concatenate([value, scores], 1), np.concatenate([np.where(index < 0, np.int32(2**31 - 2), index), where], 1), t.k, t.largest)
        return value, np.where(value == worst, np.int32(-1), index)

    return run


def _entry(site: Site, e: Expr) -> Value:
    whole, t = build(site, e.args[0]), list_type(e.args[0])
    if e.op == "worst":
        return lambda w, vals: whole(w, vals)[0][:, -1:]
    place = build(site, e.args[1])

    def pair(w: Warp, vals: Vals) -> Any:
        value, index = whole(w, vals)
        k = int(place(w, vals))
        if not 0 <= k < t.k:
            raise Abort(site.machine.located("X006", f"place {k} of a list of {t.k} is read", site.op, warp=w, expected=t.k, found=k))
        return value[:, k : k + 1], index[:, k : k + 1]

    return pair


PURE: dict[str, Builder] = {"topk_list": _topk_list, "topk": _topk, "worst": _entry, "list_item": _entry}
