"""The tile orders: every tile exactly once, and one formula for all readers."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from cake_ir.scheduler import (
    TileOrder,
    cluster_counts,
    cluster_total,
    cta_tile,
    cta_tiles,
    decode,
    decode_group,
    formula,
    group_totals,
    infix,
    launch_ctas,
    order_problem,
)  # fmt: skip

NAMES = ("m", "n", "b")


@st.composite
def orders(draw: st.DrawFn) -> TileOrder:
    axes = draw(st.integers(1, 3))
    names = NAMES[:axes]
    raster = draw(st.sampled_from([None, "heavy_first", *names]))
    swizzle = 1 if raster == "heavy_first" else draw(st.integers(1, 5))
    tiles = tuple(draw(st.integers(1, 9)) for _ in range(axes))
    cluster = (draw(st.integers(1, 3)), draw(st.integers(1, 2)) if axes > 1 else 1)
    return TileOrder(tiles, names, raster, swizzle, cluster, draw(st.sampled_from([None, "snake"])))


@given(orders())
def test_every_cluster_tile_is_decoded_exactly_once(order: TileOrder) -> None:
    counts = cluster_counts(order)
    seen = [decode(i, counts, order.raster, order.swizzle, order.names) for i in range(cluster_total(order))]
    assert sorted(seen) == sorted(product(*(range(c) for c in counts)))


@given(orders(), st.integers(1, 7), st.sampled_from(["grid", "static", "counter"]))
def test_ctas_cover_every_tile_once_and_pad_only_to_the_cluster(order: TileOrder, clusters: int, kind: str) -> None:
    clusters = cluster_total(order) if kind == "grid" else clusters
    size = order.cluster[0] * order.cluster[1]
    seen = [t for c in range(clusters) for r in range(size) for t in cta_tiles(order, kind, c, clusters, r)]  # type: ignore[arg-type]  # drawn kinds
    assert len(seen) == len(set(seen))
    inside = [t for t in seen if all(i < n for i, n in zip(t, order.tiles, strict=True))]
    assert sorted(inside) == sorted(product(*(range(n) for n in order.tiles)))
    extent = (*order.cluster, 1)
    assert all(t[i] < -(-order.tiles[i] // extent[i]) * extent[i] for t in seen for i in range(len(t)))


@given(orders())
def test_printed_formula_gives_the_decoded_tile(order: TileOrder) -> None:
    counts = cluster_counts(order)
    steps = formula(order.names, order.raster, order.swizzle)
    for linear in range(cluster_total(order)):
        env: dict[str, int] = {"l": linear, **{f"C{i}": c for i, c in enumerate(counts)}}
        for name, expression in steps:
            env[name] = eval(infix(expression, "//"), {"min": min}, env)  # arithmetic that this module printed
        assert tuple(env[f"c_{n}"] for n in order.names) == decode(linear, counts, order.raster, order.swizzle, order.names)


def test_a_snake_deals_the_first_of_one_round_the_last_of_the_next() -> None:
    order = TileOrder((8,), ("w",), deal="snake")
    assert [[t[0] for t in cta_tiles(order, "static", c, 3)] for c in range(3)] == [[0, 5, 6], [1, 4, 7], [2, 3]]


def test_first_axis_runs_fastest_by_default() -> None:
    assert [decode(i, (3, 2)) for i in range(4)] == [(0, 0), (1, 0), (2, 0), (0, 1)]


def test_swizzled_raster_walks_groups_with_the_last_one_narrower() -> None:
    got = [decode(i, (3, 2), "m", 2) for i in range(6)]
    assert got == [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (2, 1)]


def test_swizzled_raster_is_the_grouped_order_of_hand_written_gemms() -> None:
    def by_hand(linear: int, mt: int, nt: int) -> tuple[int, int]:
        per_group = 8 * nt
        group, inside = linear // per_group, linear % per_group
        first = group * 8
        width = min(8, mt - first)
        return first + inside % width, inside // width

    assert [decode(i, (19, 5), "m", 8) for i in range(95)] == [by_hand(i, 19, 5) for i in range(95)]


def test_heavy_first_starts_at_the_end_of_the_first_axis_which_is_slowest() -> None:
    names = ("m", "h", "b")
    got = [decode(i, (3, 2, 2), "heavy_first", 1, names) for i in range(5)]
    assert got == [(2, 0, 0), (2, 1, 0), (2, 0, 1), (2, 1, 1), (1, 0, 0)]


def test_cluster_ranks_are_neighbours_along_the_first_axis() -> None:
    order = TileOrder((5, 4), cluster=(2, 2))
    assert cluster_counts(order) == (3, 2)
    assert [cta_tile(order, 1, r) for r in range(4)] == [(2, 0), (3, 0), (2, 1), (3, 1)]


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=6), st.integers(1, 5), st.sampled_from([None, "m", "n"]), st.integers(1, 3),
    st.sampled_from([(1, 1), (2, 1), (1, 2)]),
)  # fmt: skip
def test_grouped_tiles_cover_the_rows_of_every_group_once(
    sizes: list[int], n_tiles: int, raster: str | None, swizzle: int, cluster: tuple[int, int]
) -> None:
    offsets = [sum(sizes[:i]) for i in range(len(sizes) + 1)]
    total = sum(group_totals(offsets, 8, n_tiles, cluster))
    cells = []
    for linear in range(total):
        for rank in range(cluster[0] * cluster[1]):
            t = decode_group(linear, offsets, 8, n_tiles, raster, swizzle, cluster, rank)
            assert t is not None
            assert t.row0 == offsets[t.group] + 8 * t.m
            if t.n < n_tiles:
                cells += [(t.n, t.row0 + i) for i in range(t.rows)]
                assert t.row0 + t.rows <= offsets[t.group + 1] or t.rows == 0
    assert sorted(cells) == sorted(product(range(n_tiles), range(offsets[-1])))
    assert decode_group(total, offsets, 8, n_tiles, raster, swizzle, cluster) is None


def test_impossible_orders_are_named() -> None:
    assert order_problem(("m", "n"), "m", 8, (2, 1)) is None
    assert 'raster="k"' in (order_problem(("m", "n"), "k", 1, (1, 1)) or "")
    assert "heavy_first" in (order_problem(("m", "n"), "heavy_first", 4, (1, 1)) or "")
    assert "second axis" in (order_problem(("r",), None, 1, (1, 2)) or "")


def test_persistent_launch_is_bounded_by_what_fits_and_by_the_work() -> None:
    assert launch_ctas(1000, 2, True, 66) == 132
    assert launch_ctas(10, 2, True, 66) == 20
    assert launch_ctas(1000, 1, False, 66) == 1000
