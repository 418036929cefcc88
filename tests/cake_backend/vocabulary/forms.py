"""Small programs that between them use every operation, every option and every register form that sm_90a has.

They are made from the tables of the language (dtypes, forms, combinations), so that a new entry of a table is a new program.
"""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.dtypes import DTYPES
from cake_ir.ops.atomic import COMBINES
from cake_ir.ops.elementwise import UNARY
from cake_ir.ops.move import REDUCES

MEMORY = tuple(d for d in DTYPES if d not in ("e2m1", "e2m3", "e3m2"))
"""Element types that a fragment can be loaded as on sm_90a."""
TILE_FORMS = ("vec", "acc", "a", "b", "rows")
INTEGERS = tuple(d for d in MEMORY if DTYPES[d].is_integer)
FLOATS = tuple(d for d in MEMORY if DTYPES[d].is_float)
BITS = {"bool": 8}


def bits(dtype: str) -> int:
    return BITS.get(dtype, DTYPES[dtype].bits)


def kernel(params: str, body: list[str], *, warps: int = 4, views: tuple[str, ...] = (), cluster: str = "", tiles: int = 1, more: tuple[str, ...] = ()) -> str:
    """One role of so many warps over one tile."""
    pool = ["pool = lm.smem(131072)", *views] if views else []
    head = [f'lm.launch(grid="tiles"{cluster})', *pool, f"work = lm.role(warps=range(0, {warps}))", "own = lm.named_barrier(work)", *more]
    lines = [*head, f'sched = lm.scheduler(kind="grid", tiles=({tiles},), names=("m",))', "with work:", "    for t in lm.tiles(sched):", *("        " + x for x in body)]
    return f'@cake.schedule(target="sm_90a")\ndef k(lm, {params}):\n' + "".join(f"    {x}\n" for x in lines)


def fed(params: str, views: tuple[str, ...], loads: list[str], body: list[str], *, cluster: str = "") -> str:
    """A load warp that fills the views by the copy engine in front of a warpgroup that works on them."""
    lines = [
        f'lm.launch(grid="tiles"{cluster})', "pool = lm.smem(131072)", *views, "work = lm.role(warps=range(0, 4))", "load = lm.role(warps=range(4, 5))",
        "ring = lm.pipeline(stages=1)", 'full = lm.barrier(pipeline=ring, prod=[load], cons=[work], arrive="tx")', "own = lm.named_barrier(work)",
        'sched = lm.scheduler(kind="grid", tiles=(2,), names=("m",))' if cluster else 'sched = lm.scheduler(kind="grid", tiles=(1,), names=("m",))',
        "with load:", "    for t in lm.tiles(sched):", "        s = lm.step(ring)", *("        " + x for x in loads),
        "with work:", "    for t in lm.tiles(sched):", "        s = lm.step(ring)", "        lm.wait(full, stage=s)", *("        " + x for x in body),
    ]  # fmt: skip
    return f'@cake.schedule(target="sm_90a")\ndef k(lm, {params}):\n' + "".join(f"    {x}\n" for x in lines)


def pair(dtype: str, rows: int = 64, cols: int = 64, rank: int = 2) -> str:
    ext = f"{rows}, {cols}" if rank == 2 else str(rows)
    return f"X: LM.gmem{rank}d[LM.{dtype}, {ext}], Y: LM.gmem{rank}d[LM.{dtype}, {ext}]"


def memory() -> Iterator[tuple[str, str]]:
    """Every form and type to and from global and shared memory, and from one form to another through a view."""
    for d in MEMORY:
        for form in TILE_FORMS:
            if form in ("a", "b") and (bits(d) == 64 or d == "bool"):
                continue
            rows, cols = (128, 16) if form == "rows" else (64, 32)
            view = (f"v = pool.view(offset=0, shape=({rows}, {cols}), dtype=lm.{d})",)
            yield f"global_{d}_{form}", kernel(pair(d, rows, cols), [f'x = lm.load(X, coords=(0, 0), shape=({rows}, {cols}), form="{form}", clip=True, fill=1, cache="keep")', "lm.store(Y, x, coords=(0, 0), clip=True)"])
            yield f"view_in_{d}_{form}", kernel(pair(d, rows, cols), [f"v.store(lm.load(X, coords=(0, 0), shape=({rows}, {cols})))", "lm.sync(own)", f'lm.store(Y, v.load(form="{form}"), coords=(0, 0))'], views=view)
            yield f"view_out_{d}_{form}", kernel(pair(d, rows, cols), [f'v.store(lm.load(X, coords=(0, 0), shape=({rows}, {cols}), form="{form}"))', "lm.sync(own)", 'lm.store(Y, v.load(form="vec"), coords=(0, 0))'], views=view)
            if form != "rows":
                yield f"view_turned_{d}_{form}", kernel(pair(d), ["v.store(lm.load(X, coords=(0, 0), shape=(64, 64)))", "lm.sync(own)", f'lm.store(Y, v.T.load(form="{form}"), coords=(0, 0))'], views=(f"v = pool.view(offset=0, shape=(64, 64), dtype=lm.{d})",))
        for form in ("rowvec", "colvec"):
            yield f"vector_{d}_{form}", kernel(pair(d, 64, 0, 1), [f'v.store(lm.load(X, coords=(0,), shape=(64,), form="{form}"))', "lm.sync(own)", f'lm.store(Y, v.load(form="{form}"), coords=(0,))'], views=(f"v = pool.view(offset=0, shape=(64,), dtype=lm.{d})",))
        yield f"uniform_{d}", kernel(pair(d, 64, 0, 1), ["v.store(lm.load(X, coords=(0,), shape=(64,)))", "lm.sync(own)", "lm.store(Y, v.ld(3), coords=(0,))", "lm.store(Y, lm.ld(X, 2), coords=(1,))"], views=(f"v = pool.view(offset=0, shape=(64,), dtype=lm.{d})",))
        yield f"gather_{d}", kernel(f"{pair(d, 64, 32)}, I: LM.gmem2d[LM.i32, 64, 32]", ['i = lm.load(I, coords=(0, 0), shape=(64, 32), form="acc")', 'x = lm.load(X, coords=(lm.min(lm.max(i, 0), 31), 0), shape=(64, 32), form="acc", like=i, mask=i > 0, fill=1, cache="stream")', "lm.store(Y, x, coords=(0, 0))"])


def values() -> Iterator[tuple[str, str]]:
    """Every cast with its rounding modes, every arithmetic operation on each type, and each change of form."""
    for a in MEMORY:
        for b in MEMORY:
            if b not in ("bool", "ue8m0") and not (a == "ue8m0" and b == "bf16"):
                yield f"cast_{a}_{b}", kernel(f"X: LM.gmem2d[LM.{a}, 64, 16], Y: LM.gmem2d[LM.{b}, 64, 16]", ["x = lm.load(X, coords=(0, 0), shape=(64, 16))", f"lm.store(Y, lm.cast(x, lm.{b}), coords=(0, 0))"])
    for b, modes in (("bf16", ("rz",)), ("f16", ("rz",)), ("i32", ("rz", "rm", "rp")), ("u64", ("rz", "rm", "rp"))):
        for mode in modes:
            yield f"cast_f32_{b}_{mode}", kernel(f"X: LM.gmem2d[LM.f32, 64, 64], Y: LM.gmem2d[LM.{b}, 64, 64]", ["x = lm.load(X, coords=(0, 0), shape=(64, 64))", f'lm.store(Y, lm.cast(x, lm.{b}, round="{mode}"), coords=(0, 0))'])
    real = ["x / y", "lm.div(x, y)", "lm.fma(x, y, x)", *(f"lm.{u}(x)" for u in sorted(UNARY - {"neg", "not", "abs"}))]
    whole = ["x % y", "x & y", "x | y", "x ^ y", "x << 2", "x >> 1"]
    every = ["x + y", "x - y", "x * y", "lm.min(x, y)", "lm.max(x, y)", "lm.abs(x)", "-x", "lm.where(not ((x < y) & (x != y) | (x >= 3)), x, y)"]
    for d in MEMORY:
        if d in ("bool", "ue8m0"):
            continue
        todo = [*every, *(whole if d in INTEGERS else real)]
        body = ["x, y = lm.load(X, coords=(0, 0), shape=(64, 64)), lm.load(Y, coords=(0, 0), shape=(64, 64))", *(f"x = {e}" for e in todo), "lm.store(Y, x, coords=(0, 0))"]
        yield f"arithmetic_{d}", kernel(pair(d), body)
        body = ["x, y = lm.ld(X, 0), lm.ld(X, 1)", *(f"x = {e}" for e in todo if "not" not in e), "lm.store(Y, x, coords=(0,))"]
        yield f"uniform_arithmetic_{d}", kernel(pair(d, 64, 0, 1), body)
    for d in ("bf16", "f16"):
        for f, g in (("acc", "a"), ("acc", "b"), ("a", "acc"), ("b", "acc")):
            yield f"form_{d}_{f}_{g}", kernel(pair(d), [f'x = lm.load(X, coords=(0, 0), shape=(64, 64), form="{f}")', f'lm.store(Y, lm.cast(x, lm.{d}, form="{g}"), coords=(0, 0))'], warps=1)
        yield f"transpose_{d}", kernel(pair(d), ['x = lm.load(X, coords=(0, 0), shape=(64, 64), form="acc")', "lm.store(Y, lm.transpose(lm.transpose(x)), coords=(0, 0))"], warps=1)
    for d in ("e4m3", "e5m2", "i8"):
        yield f"form_{d}_acc_a", kernel(f"X: LM.gmem2d[LM.f32, 64, 64], Y: LM.gmem2d[LM.{d}, 64, 64]", ['x = lm.load(X, coords=(0, 0), shape=(64, 64), form="acc")', f'lm.store(Y, lm.cast(x, lm.{d}, form="a"), coords=(0, 0))'])


def apart(body: list[str]) -> list[str]:
    """The lanes meet between two stores to one place."""
    return [x for line in body for x in (("lm.sync(own)", line) if line.startswith("lm.store") else (line,))]


def reductions() -> Iterator[tuple[str, str]]:
    """Reductions, scans, running arguments, lists and scales, whole and in two steps."""
    for d in ("f32", "i32", "u32", "bf16", "i64"):
        P = f"X: LM.gmem2d[LM.{d}, 64, 64], Y: LM.gmem1d[LM.{d}, 64], Z: LM.gmem2d[LM.{d}, 64, 64]"
        for op in ("add", "max", "min"):
            body = ['x = lm.load(X, coords=(0, 0), shape=(32, 32), form="acc")']
            for axis in (0, 1):
                body += [f'lm.store(Y, lm.reduce(x, "{op}", axis={axis}), coords=(0,))', f'lm.store(Y, lm.finish(lm.reduce(x, "{op}", axis={axis}, partial=True)), coords=(0,))']
                if bits(d) == 32:
                    body += [f'lm.store(Z, lm.scan(x, "{op}", axis={axis}), coords=(0, 0))']
            yield f"reduce_{d}_{op}", kernel(P, [*apart(body), 'v = lm.load(X, coords=(0, 0), shape=(32, 32))', "lm.sync(own)", f'lm.store(Y, lm.reduce(v, "{op}", axis=1), coords=(0,))'], warps=1)
            if d in ("f32", "i32"):
                yield f"across_{d}_{op}", kernel(P, [
                    "c = lm.frag(shape=(64, 64), dtype=lm.f32, form=\"acc\", warps=(2, 2))", 'x = lm.load(X, coords=(0, 0), shape=(64, 64), form="acc", like=c)',
                    f'lm.store(Y, lm.reduce(x, "{op}", axis=1, across=work, scratch=rows, sync=own), coords=(0,))', "lm.sync(own)",
                    f'lm.store(Y, lm.reduce(x, "{op}", across=work, scratch=part, sync=own), coords=(0,))', "lm.sync(own)",
                    f'lm.store(Y, lm.reduce(lm.load(X, coords=(0, 0), shape=(64, 64)), "{op}", across=work, scratch=part, sync=own), coords=(1,))',
                ], views=(f"rows = pool.view(offset=0, shape=(4, 64), dtype=lm.{d})", f"part = pool.view(offset=1024, shape=(4,), dtype=lm.{d})"))  # fmt: skip
    body = ['x = lm.load(X, coords=(0, 0), shape=(64, 64), form="acc")']
    for op in ("argmin", "argmax"):
        body += [f"best = (lm.rowvec(x, init={'-' if op == 'argmax' else ''}lm.inf), lm.rowvec(x, init=0))", f"best = lm.{op}(x, axis=1, base=3, into=best)", "v, i = lm.finish(best)", "lm.store(Y, v, coords=(0,))", "lm.store(I, i, coords=(0,))"]
    for largest in (True, False):
        body += [f"lst = lm.topk_list(x, k=3, largest={largest})", "lst = lm.topk(x, axis=1, base=1, into=lst)", "far = lm.where(x < lst.worst, x, 0.0)", "lst = lm.finish(lst)", "v, i = lst[1]", "lm.store(Y, v + lm.sum(far, axis=1), coords=(0,))", "lm.store(I, i, coords=(0,))"]
    yield "running", kernel("X: LM.gmem2d[LM.f32, 64, 64], Y: LM.gmem1d[LM.f32, 64], I: LM.gmem1d[LM.i32, 64]", apart(body))
    yield "excess", kernel("X: LM.gmem2d[LM.f32, 64, 64], Y: LM.gmem1d[LM.f32, 64], Z: LM.gmem2d[LM.f32, 64, 64]", ['x = lm.load(X, coords=(0, 0), shape=(64, 64), form="acc")', "by = lm.excess(x, axis=1, margin=8.0)", "lm.store(Y, by, coords=(0,))", "x = x - by", "lm.store(Z, x * lm.exp2(-by), coords=(0, 0))"])
    for kind in ("f32", "ue8m0"):
        for d in ("e4m3", "e5m2"):
            yield f"scale_{kind}_{d}", kernel(f"X: LM.gmem2d[LM.f32, 64, 128], S: LM.gmem1d[LM.{kind}, 64], Q: LM.gmem2d[LM.{d}, 64, 128]", ['x = lm.load(X, coords=(0, 0), shape=(64, 128), form="acc")', f's = lm.amax_scale(x, axis=1, block=128, kind="{kind}", dtype=lm.{d})', "lm.store(S, s, coords=(0,))", f"lm.store(Q, lm.cast(x * lm.rcp(lm.cast(s, lm.f32)), lm.{d}), coords=(0, 0))"])
    yield "rows_form", kernel("X: LM.gmem2d[LM.f32, 128, 16], Y: LM.gmem1d[LM.f32, 128], Z: LM.gmem2d[LM.f32, 128, 16]", ['x = lm.load(X, coords=(0, 0), shape=(128, 16), form="rows")', 'm = lm.reduce(x, "max", axis=1)', "lm.store(Y, m, coords=(0,))", "lm.store(Z, x - m, coords=(0, 0))"])
    yield "coordinates", kernel("X: LM.gmem2d[LM.f32, 64, 64], Y: LM.gmem2d[LM.f32, 64, 64]", ['x = lm.load(X, coords=(0, 0), shape=(64, 64), form="acc")', "r, c = lm.iota(x, axis=0, base=2), lm.iota(x, axis=1)", "ok = lm.in_bounds(x, 50, 37)", "x = lm.where(ok, x + lm.cast(r, lm.f32) - lm.cast(c, lm.f32), lm.colvec(x, init=2.0))", "lm.store(Y, x, coords=(0, 0), mask=ok)"])


def updates() -> Iterator[tuple[str, str]]:
    """Atomic updates of global and shared memory, reductions by the copy engine, words to a peer."""
    for op, dtypes in COMBINES.items():
        for d in dtypes:
            order = ', order="any"' if op == "add" and DTYPES[d].is_float else ""
            body = ["x = lm.load(X, coords=(0, 0), shape=(64, 64))", 'y = lm.load(X, coords=(0, 0), shape=(64, 64), form="acc")', "u = lm.ld(Z, 0)"]
            body += [f'lm.atomic(Y, x, coords=(0, 0), op="{op}", scope="cta"{order}, clip=True)', f'lm.atomic(Y, y, coords=(0, 0), op="{op}", scope="gpu"{order}, mask=lm.in_bounds(y, 40, 33))', f'lm.atomic(Y, u, coords=(0, 0), op="{op}", scope="sys"{order})']
            yield f"atomic_{d}_{op}", kernel(f"X: LM.gmem2d[LM.{d}, 64, 64], Y: LM.gmem2d[LM.{d}, 64, 64].zeroed, Z: LM.gmem1d[LM.{d}, 4]", body)
            if bits(d) == 32 and not (op == "add" and d == "f32"):
                body = ["i = lm.load(I, coords=(0,), shape=(512,))", "x = lm.load(X, coords=(0,), shape=(512,), like=i)", "v.store(lm.load(Z, coords=(0,), shape=(128,)))", "lm.sync(own)", f'v.atomic(x, idx=i, op="{op}")', "lm.sync(own)", 'lm.store(Z, v.load(form="vec"), coords=(0,))']
                yield f"atomic_view_{d}_{op}", kernel(f"X: LM.gmem1d[LM.{d}, 512], I: LM.gmem1d[LM.i32, 512], Z: LM.gmem1d[LM.{d}, 128]", body, views=(f"v = pool.view(offset=0, shape=(128,), dtype=lm.{d})",))
    for op, dtypes in REDUCES.items():
        for d in dtypes:
            order = ', order="any"' if op == "add" and DTYPES[d].is_float else ""
            yield f"tma_reduce_{d}_{op}", fed(f"A: LM.tma2d[LM.{d}, 64, 64], C: LM.tma2d[LM.{d}, 64, 64].zeroed", (f"v = pool.view(offset=0, shape=(64, 64), dtype=lm.{d})",), ["v.tma_load(A, coords=(0, 0), stage=s, barrier=full)"], [f'v.tma_reduce(C, coords=(0, 0), op="{op}"{order})', "lm.store_wait(pending=0, read=False)"])
    for d in MEMORY:
        if d == "bool":
            continue
        for form in ("vec", "acc", "a", "b", "rowvec", "colvec"):
            if (bits(d) == 64 and form in ("a", "b")) or (bits(d) == 8 and form == "acc") or (bits(d) < 32 and form in ("rowvec", "colvec")):
                continue
            flat = form in ("rowvec", "colvec")
            shape, at = ("(64,)", "(0,)") if flat else (f"(64, {128 if bits(d) == 8 else 64})", "(0, 0)")
            ext = shape.strip("(),")
            yield f"send_{d}_{form}", kernel(f"X: LM.gmem{1 + (not flat)}d[LM.{d}, {ext}], Y: LM.gmem{1 + (not flat)}d[LM.{d}, {ext}]", [
                "s = lm.step(ring)", f'v.send(lm.load(X, coords={at}, shape={shape}, form="{form}"), cta=1 - lm.cta_rank("m"), barrier=sent, stage=s)', "lm.wait(sent, stage=s)",
                "if t.m == 0:", f'    lm.store(Y, v.load(form="{form}"), coords={at})',
            ], views=(f"v = pool.view(offset=0, shape={shape}, dtype=lm.{d})",), cluster=", cluster=(2, 1)", tiles=2,
               more=("ring = lm.pipeline(stages=1)", 'sent = lm.barrier(pipeline=ring, prod=[work], cons=[work], arrive="tx", scope="cluster")'))  # fmt: skip


def copies() -> Iterator[tuple[str, str]]:
    """The copy engine over types, swizzles, ranks, hints and multicast; bulk copies; cp.async by rectangle and by rows."""
    for d in MEMORY:
        for swizzle in ("None", '"128b"', '"64b"', '"32b"') if d in ("bf16", "f32", "e4m3") else ("None",):
            cols = 128 if bits(d) == 8 and swizzle != "None" else 64
            view = (f"v = pool.view(offset=0, shape=(64, {cols}), dtype=lm.{d}, swizzle={swizzle})",)
            yield f"tma_{d}_{swizzle}", fed(f"A: LM.tma2d[LM.{d}, 64, {cols}], C: LM.tma2d[LM.{d}, 64, {cols}]", view, ['v.tma_load(A, coords=(0, 0), stage=s, barrier=full, cache="keep")'], ['v.tma_store(C, coords=(0, 0), cache="stream", rows=37)', "lm.store_wait(pending=0)"])
            body = [f"x = lm.load(X, coords=(0, 0), shape=(64, {cols}))", "lm.store(W, x, coords=(0, 0))"]
            body += ["v.cp_async(X, coords=(0, 0), mask=lm.in_bounds(x, 40, 31))", "lm.cp_commit()", "lm.cp_wait(pending=0)", "lm.sync(own)", 'lm.store(Y, v.load(form="vec"), coords=(0, 0))']
            yield f"cp_async_{d}_{swizzle}", kernel(f"X: LM.gmem2d[LM.{d}, 64, {cols}], Y: LM.gmem2d[LM.{d}, 64, {cols}], W: LM.gmem2d[LM.{d}, 64, {cols}]", body, views=view)
            body = ['i = lm.load(I, coords=(0,), shape=(64,), form="rowvec")', "v.cp_async_rows(X, rows=i, coords=(0, 0))", "lm.cp_commit()", "lm.cp_wait(pending=0)", "lm.sync(own)", 'lm.store(Z, v.load(form="vec"), coords=(0, 0))']
            yield f"cp_async_rows_{d}_{swizzle}", kernel(f"X: LM.gmem2d[LM.{d}, 64, {cols}], I: LM.gmem1d[LM.i32, 64], Z: LM.gmem2d[LM.{d}, 64, {cols}]", body, views=view)
        yield f"bulk_{d}", fed(f"A: LM.gmem1d[LM.{d}, 1024], C: LM.gmem2d[LM.{d}, 16, 64]", (f"v = pool.view(offset=0, shape=(16, 64), dtype=lm.{d})",), ["v.bulk_load(A, offset=0, n=1024, stage=s, barrier=full)"], ["v.bulk_store(C, coords=(0, 0), rows=9)", "lm.store_wait(pending=0)"])
    for rank in (1, 2, 3, 4, 5):
        flat = rank == 1
        shape, ext = ("(256,)", "256") if flat else ("(64, 64)", ", ".join(["2"] * (rank - 2) + ["64", "64"]))
        at = f"({', '.join(['0'] * rank)}{',' if flat else ''})"
        yield f"tma_{rank}d", fed(f"A: LM.tma{rank}d[LM.bf16, {ext}], C: LM.tma{rank}d[LM.bf16, {ext}]", (f"v = pool.view(offset=0, shape={shape}, dtype=lm.bf16)",), [f"v.tma_prefetch(A, coords={at})", f"v.tma_load(A, coords={at}, stage=s, barrier=full)"], [f"v.tma_store(C, coords={at})", "lm.store_wait(pending=0)"])
    for axis, cluster in (("m", "(2, 1)"), ("n", "(1, 2)"), ("m", "(2, 2)")):
        params = "A: LM.tma2d[LM.bf16, 64, 64], C: LM.gmem2d[LM.f32, 64, 64].zeroed"
        yield f"multicast_{axis}_{cluster}", fed(params, ('v = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")',), [f'v.tma_load(A, coords=(0, 0), stage=s, barrier=full, multicast="{axis}")'], ['x = lm.cast(v.load(form="vec"), lm.f32)', 'lm.atomic(C, x, coords=(0, 0), op="max")'], cluster=f", cluster={cluster}").replace('tiles=(2,), names=("m",)', "tiles=(2, 2)")


def products() -> Iterator[tuple[str, str]]:
    """wgmma from shared memory and registers, and mma.sync over its splits, for every pair of types."""
    for a, b, acc in (("bf16", "bf16", "f32"), ("f16", "f16", "f32"), ("f16", "f16", "f16"), ("tf32", "tf32", "f32"), ("i8", "i8", "i32"), *((x, y, z) for x in ("e4m3", "e5m2") for y in ("e4m3", "e5m2") for z in ("f32", "f16"))):
        deep = 128 if bits(a) == 8 else 64
        views = (f'a = pool.view(offset=0, shape=(64, {deep}), dtype=lm.{a}, swizzle="128b")', f'b = pool.view(offset=32768, shape=(64, {deep}), dtype=lm.{b}, swizzle="128b")')
        params = f"A: LM.tma2d[LM.{a}, 64, {deep}], B: LM.tma2d[LM.{b}, 64, {deep}], C: LM.gmem2d[LM.{acc}, 64, 64]"
        loads = ["a.tma_load(A, coords=(0, 0), stage=s, barrier=full)", "b.tma_load(B, coords=(0, 0), stage=s, barrier=full)"]
        for name, first in (("ss", "a"), ("rs", 'a.load(form="a")')):
            yield f"wgmma_{a}_{b}_{acc}_{name}", fed(params, views, loads, [f'c = lm.frag(shape=(64, 64), dtype=lm.{acc}, form="acc")', f"f = {first}", "lm.mma(c, f, b, init=True)", "lm.mma_wait(pending=0)", "lm.store(C, c, coords=(0, 0))"])
        for split in ("(4, 1)", "(2, 2)", "(1, 4)"):
            yield f"mma_{a}_{b}_{acc}_{split}", fed(params, views, loads, [f'c = lm.frag(shape=(64, 64), dtype=lm.{acc}, form="acc", warps={split}, init=0)', 'lm.mma(c, a.load(form="a", like=c), b.ldmatrix(form="b", like=c))' if bits(b) < 32 else 'lm.mma(c, a.load(form="a", like=c), b.load(form="b", like=c))', "lm.store(C, c, coords=(0, 0))"])
    for turn in (".T", ""):
        views = ('a = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")', 'b = pool.view(offset=32768, shape=(64, 64), dtype=lm.bf16, swizzle="128b")')
        yield f"wgmma_turned{turn}", fed("A: LM.tma2d[LM.bf16, 64, 64], B: LM.tma2d[LM.bf16, 64, 64], C: LM.gmem2d[LM.f32, 64, 64]", views, ["a.tma_load(A, coords=(0, 0), stage=s, barrier=full)", "b.tma_load(B, coords=(0, 0), stage=s, barrier=full)"], ['c = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0)', "with lm.mma_group():", f"    lm.mma(c, a{turn}, b.T)", "    lm.mma(c, b, a)", "lm.mma_wait(pending=0)", "lm.store(C, c, coords=(0, 0))"])


def handshakes() -> Iterator[tuple[str, str]]:
    """Arrivals of each kind inside a CTA and over a cluster, turns, flags, named and cluster barriers, dependent launches."""
    for kind in ("warp", "member", "thread", "tx", "cp_async"):
        for scope in ("cta", "cluster"):
            body = ["v[s].cp_async(X, coords=(0, 0))"] if kind == "cp_async" else []
            head = [f'lm.launch(grid="tiles"{", cluster=(2, 1)" if scope == "cluster" else ""})', "pool = lm.smem(16384)", "v = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=2)", "a = lm.role(warps=range(0, 4))", "b = lm.role(warps=range(4, 8))", "ring = lm.pipeline(stages=2)"]
            head += [f'full = lm.barrier(pipeline=ring, prod=[a], cons=[b], arrive="{kind}", scope="{"cta" if kind == "cp_async" else scope}")', f'empty = lm.barrier(pipeline=ring, prod=[b], cons=[a], arrive="warp", primed=True, scope="{"cta" if kind == "cp_async" else scope}")', 'sched = lm.scheduler(kind="grid", tiles=(2,), names=("m",))']
            lines = [*head, "with a:", "    for t in lm.tiles(sched):", "        s = lm.step(ring)", "        lm.wait(empty, stage=s)", *("        " + x for x in body), "        lm.arrive(full, stage=s)", "with b:", "    for t in lm.tiles(sched):", "        s = lm.step(ring)", "        lm.wait(full, stage=s)", *(['        lm.atomic(Y, lm.cast(v[s].load(form="vec"), lm.f32), coords=(0, 0), op="max")'] if body else []), "        lm.arrive(empty, stage=s)"]
            yield f"arrive_{kind}_{scope}", '@cake.schedule(target="sm_90a")\ndef k(lm, X: LM.gmem2d[LM.bf16, 64, 64], Y: LM.gmem2d[LM.f32, 64, 64].zeroed):\n' + "".join(f"    {x}\n" for x in lines)
    head = ['lm.launch(grid="persistent", cluster=(2, 1))', "work = lm.role(warps=range(0, 8), members=2, regs=128)", "turn = lm.turns(work)", "own = lm.named_barrier(work, per_member=True)", "all = lm.cluster_barrier()", 'sched = lm.scheduler(kind="static", tiles=(4,), names=("m",))']
    body = ["with work:", "    lm.pdl_wait()", "    for t in lm.tiles(sched):", "        lm.wait(turn)", "        lm.fence_proxy()", "        lm.arrive(turn)", "        lm.sync(own)", "        lm.sync(all)", "        lm.cluster_sync()", "        lm.signal(F, 2 * t.m + work.index, 1)", "        lm.spin(F, 2 * t.m + 1 - work.index, 1)", "    lm.pdl_launch()"]
    yield "meetings", '@cake.schedule(target="sm_90a")\ndef k(lm, F: LM.gmem1d[LM.i32, 8].zeroed):\n' + "".join(f"    {x}\n" for x in (*head, *body))
    for kind, grid, more in (("grid", "tiles", ""), ("static", "persistent", ""), ("counter", "persistent", ", counter=N"), ("grouped", "persistent", ", offsets=O, block=64")):
        for raster in ("", ', raster="m"', ', raster="n"', ', raster="heavy_first"', ", swizzle=2", ', raster="m", swizzle=4'):
            if kind == "grouped" and ("heavy" in raster or '"n"' in raster):
                continue
            twice = 1 if kind == "counter" else 2
            loop = ["    for t in lm.tiles(sched):", f"        lm.atomic(Y, {'t.rows + t.row0' if kind == 'grouped' else 1}, coords=(t.n, {'t.group' if kind == 'grouped' else 't.m'}), op=\"add\")"]
            lines = [f'lm.launch(grid="{grid}", cluster=(2, 1))', "work = lm.role(warps=range(0, 4))", f'sched = lm.scheduler(kind="{kind}", tiles={"(4,)" if kind == "grouped" else "(4, 4)"}{raster}{more})', "with work:", *loop * twice]
            yield f"order_{kind}{raster}", '@cake.schedule(target="sm_90a")\ndef k(lm, Y: LM.gmem2d[LM.i32, 64, 64].zeroed, N: LM.gmem1d[LM.i32, 1].zeroed, O: LM.gmem1d[LM.i32, 5]):\n' + "".join(f"    {x}\n" for x in lines)


PARTS = (memory, values, reductions, updates, copies, products, handshakes)
PROGRAMS: dict[str, dict[str, str]] = {part.__name__: dict(part()) for part in PARTS}
"""Texts by part and name."""
