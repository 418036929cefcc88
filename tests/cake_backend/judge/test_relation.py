"""How wrong values follow from right ones: each relation is told by its own trace, and random errors tell none."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from cake_backend.judge.numerics import compare_close
from cake_backend.task import Tolerance

BF16 = ml_dtypes.bfloat16
TOLERANCE = Tolerance(reason="test", rtol=8e-3, scaled=1e-3)
REF = np.random.default_rng(5).standard_normal((256, 320))
PER_ROW = np.random.default_rng(6).uniform(0.5, 3, (256, 1))
PER_COLUMN = np.random.default_rng(7).uniform(0.5, 3, (1, 320))
Array = np.ndarray


def told(change: Callable[[Array], Array | None], ref: Array = REF, rows: Array | None = None) -> tuple[str, str, str]:
    made = ref.copy()
    changed = change(made)
    out = (made if changed is None else changed).astype(BF16)
    if rows is not None:
        out, ref = out[rows], ref[rows]
    verdict = compare_close(out, ref, TOLERANCE, rows=rows)
    assert not verdict.ok
    return (verdict.relation.kind, verdict.relation.by, verdict.relation.text) if verdict.relation else ("", "", "")


def put(where: tuple[slice, slice], value: object) -> Callable[[Array], None]:
    def change(made: Array) -> None:
        made[where] = value

    return change


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda x: 2 * x, "wrong elements are 2 times what belongs there"),
        (lambda x: -x, "wrong elements are -1 times what belongs there"),
        (lambda x: x * 1.442695, "wrong elements are log2(e) (1.443) times what belongs there"),
        (lambda x: x / 128**0.5, "wrong elements are 1/sqrt(128) (0.08839) times what belongs there"),
        (lambda x: x * 1.3, "wrong elements are 1.3 times what belongs there"),
        (lambda x: x + 0.75, "wrong elements are off by 0.75"),
        (put((slice(64, 128), slice(0, 64)), 0.0), "wrong elements are 0"),
    ],
)
def test_one_number_for_all_is_named(change, text) -> None:
    assert told(change)[2] == text


@pytest.mark.parametrize(
    ("change", "kind", "by"),
    [(lambda x: x * PER_ROW, "factor", "row"), (lambda x: x * PER_COLUMN, "factor", "column"), (lambda x: x + PER_ROW, "offset", "row"), (lambda x: x + PER_COLUMN, "offset", "column")],
)
def test_a_number_for_each_row_or_column_is_told_from_one_for_all(change, kind: str, by: str) -> None:
    found = told(change)
    assert found[:2] == (kind, by) and f"{by} 0 by" in found[2]


def columns(order: Array) -> Callable[[Array], Array]:
    return lambda x: x[:, order]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (put((slice(128, 256), slice(64, 128)), REF[:128, 64:128]), "wrong places hold what belongs 128 rows back"),
        (put((slice(0, 64), slice(0, 64)), REF[64:128, 128:192]), "wrong places hold what belongs 64 rows on and 128 columns on"),
        (columns(np.arange(320) ^ 8), "columns that differ by 8 are exchanged"),
        (columns(np.arange(320) ^ 1), "columns that differ by 1 are exchanged"),
        (lambda x: x[np.arange(256) ^ 16], "rows that differ by 16 are exchanged"),
        (columns(np.arange(320).reshape(-1, 8)[np.random.default_rng(1).permutation(40)].ravel()), "chunks of 8 elements stand elsewhere in their row: row 0 column 0 holds column"),
        (lambda x: np.take_along_axis(x, np.arange(320)[None, :] ^ (8 * (np.arange(256)[:, None] % 8)), 1), "chunks of 8 elements stand elsewhere in their row"),
        (lambda x: x.reshape(4, 64, 5, 64).transpose(0, 3, 2, 1).reshape(256, 320), "every tile of 64 x 64 is transposed"),
    ],
)
def test_values_of_another_place_are_traced_to_it(change, text: str) -> None:
    assert told(change)[2].startswith(text)


def test_a_square_output_is_seen_to_be_transposed() -> None:
    assert told(lambda x: x.T.copy(), REF[:, :256])[2] == "the output is transposed"


def test_sampled_rows_are_named_by_their_true_numbers() -> None:
    rows = np.sort(np.random.default_rng(2).choice(256, 60, replace=False))
    source = rows[5]

    def change(made: Array) -> None:
        made[rows[40]] = REF[source]

    kind, _, text = told(change, rows=rows)
    assert kind == "moved" and text == f"wrong places hold what belongs {rows[40] - source} rows back"


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x + np.random.default_rng(3).standard_normal(x.shape),
        lambda x: np.where(np.random.default_rng(4).uniform(size=x.shape) < 0.05, 9.0 * np.random.default_rng(8).standard_normal(x.shape), x),
        put((slice(3, 4), slice(3, 6)), 100.0),
    ],
)
def test_what_has_no_relation_is_given_none(change) -> None:
    assert told(change) == ("", "", "")


def test_equal_values_everywhere_tell_nothing() -> None:
    assert told(lambda x: x * 3, np.ones((64, 64))) == ("", "", "")


def test_a_large_output_is_looked_at_around_its_first_wrong_row() -> None:
    ref = np.random.default_rng(9).standard_normal((4096, 1024)).astype(np.float32).astype(np.float64)
    assert told(put((slice(3072, 3200), slice(128, 256)), ref[2944:3072, 128:256]), ref)[2] == "wrong places hold what belongs 128 rows back"
