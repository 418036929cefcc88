"""Stores into a peer CTA's shared memory that complete by bytes on its barrier."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cake_backend.simulate import floats
from cake_backend.simulate.access import ViewAccess
from cake_backend.simulate.elementwise import build, frag_type, grid
from cake_backend.simulate.engines import Transfer, Work
from cake_backend.simulate.faults import Abort, label
from cake_backend.simulate.machine import Site, Step, Vals
from cake_backend.simulate.move import _writes
from cake_backend.simulate.registers import by_lane
from cake_backend.simulate.state import Warp
from cake_backend.simulate.sync import barrier_at, position
from cake_ir.program import Expr


def _send(site: Site) -> Step:
    m, op, access, at = site.machine, site.op, ViewAccess(site, "view"), position(site)
    e = op.operands["x"]
    assert isinstance(e, Expr)
    t, x, parts, cta_at = frag_type(e), build(site, site.code.trees["x"]), grid(site, frag_type(e)), site.code.index["cta"]
    name = str(op.attrs["barrier"])

    def step(warp: Warp, vals: Vals) -> None:
        h, rank = parts[warp.warp], int(vals[cta_at])
        ranks = warp.cta.cluster.by_rank
        if rank not in ranks:
            raise Abort(m.located("X006", f"{label(op)} goes to CTA {rank} of a cluster of {len(ranks)}", op, warp=warp, expected=len(ranks), found=rank))
        raw = floats.encode(np.asarray(np.broadcast_to(x(warp, vals), h.shape)), t.dtype)
        if not _writes(t, site.width, warp):
            return
        mine = (h.rows >= 0) & (_first(t.chunk or 1) if by_lane(t) and t.form == "rowvec" else True)
        if np.all(mine):
            cells = access.of_fragment(warp, vals, t, h)
        else:
            rows, cols = access.places(t, h)
            cells, raw = access.cells(warp, vals, (h.key, "ragged"), np.broadcast_to(rows, h.shape)[mine], np.broadcast_to(cols, h.shape)[mine]), raw[mine]
        cta = ranks[rank]
        pool, bar, nbytes = access.pool(cta), barrier_at(cta, name, at(vals)), raw.size * raw.itemsize
        if not nbytes:
            return
        m.hazard(site, warp, pool, cells, "w", f"bytes of `{access.view}` in CTA {cta.number}")
        pool.poison(cells)

        def land(work: Work) -> None:
            pool.write(cells, raw)
            work.release()
            bar.complete(nbytes)

        work = Transfer("tma", op, warp, land, barriers=[(bar, nbytes)])
        work.guard(pool, cells, "w")
        m.submit(work)

    return step


def _first(lanes: int) -> np.ndarray:
    """One lane of those that share a row of a vec."""
    return (np.arange(32) % lanes == 0)[:, None]


VALUES: dict[str, tuple[Callable[[Site], Step], ...]] = {"view.send": (_send,)}
