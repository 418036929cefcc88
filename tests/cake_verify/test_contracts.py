"""The audit of hardware contracts is complete, and agrees with the pages of the rules in both directions."""

from pathlib import Path

import pytest

from cake_ir.targets import TARGETS, target
from cake_ir.targets.contracts import CONTRACTS
from cake_verify import verify_text
from cake_verify.contracts import HELD, page
from cake_verify.rule import pages
from cake_verify.rules.conformance.h009_transaction_bytes import MOST_BYTES
from cake_verify.rules.examples import COPY, LOOP, MULTICAST, TENSOR_MEMORY, edit

ROOT = Path(__file__).resolve().parents[2]


def codes(text: str, **options: object) -> list[str]:
    return [d.code for d in verify_text(text, suggest=False, **options).errors]  # type: ignore[arg-type]  # options of verify_text


def test_every_contract_is_held_by_something() -> None:
    assert set(HELD) == set(CONTRACTS)
    assert not [name for name, held in HELD.items() if not (held.codes or held.derived)]


@pytest.mark.parametrize("name", CONTRACTS)
def test_the_codes_of_a_contract_are_those_whose_pages_cite_it(name: str) -> None:
    citing = sorted(code for code, p in pages().items() if name in p.sources)
    assert sorted(HELD[name].codes) == citing


def test_pages_cite_contracts_that_exist() -> None:
    assert {source for p in pages().values() for source in p.sources} <= set(CONTRACTS)


def test_the_committed_page_is_current() -> None:
    assert (ROOT / "docs" / "contracts.md").read_text("utf-8") == page(), "run: python -m cake_verify.contracts > docs/contracts.md"


def test_shared_memory_is_smaller_than_what_a_barrier_counts() -> None:
    assert max(target(name).smem_optin for name in TARGETS) < MOST_BYTES  # so H009 needs loads that repeat


# ------------------------------------------------------------------ rules that the audit asked for


def test_more_tensor_maps_than_parameters_hold_is_refused() -> None:
    def text(maps: int) -> str:
        names = ", ".join(f"X{i}: LM.tma2d[LM.bf16]" for i in range(maps))
        stores = "".join(f"        a.tma_store(X{i}, coords=(0, 0))\n" for i in range(maps))
        return (f'\n@cake.schedule(target="sm_90a")\ndef many(lm, {names}):\n    pool = lm.smem(8192)\n'
                '    a = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")\n    work = lm.role(warps=range(0, 4))\n'
                '    own = lm.named_barrier(work)\n    with work:\n        a.store(lm.frag(shape=(64, 64), dtype=lm.bf16, form="acc", init=0.0))\n'
                f"        lm.fence_proxy()\n        lm.sync(own)\n{stores}        lm.store_wait(pending=0)\n")  # fmt: skip

    assert codes(text(256)) == ["H007"]
    assert codes(text(255)) == []


_PAIR = edit(TENSOR_MEMORY, ("    load = lm.role", '    lm.launch(grid="tiles", cluster=(2, 1))\n    load = lm.role'),
             ("lm.mma(acc, a, b, init=True)", "lm.mma(acc, a, b, init=True, ctas=2)"), ("offset=16384, shape=(128, 64)", "offset=16384, shape=(64, 64)"))  # fmt: skip


def test_a_pair_needs_a_cluster_of_two_along_the_first_axis() -> None:
    assert "H023" not in codes(_PAIR)
    assert codes(edit(_PAIR, ("cluster=(2, 1)", "cluster=(1, 2)"))) == ["H023"]


def test_a_kernel_pairs_all_its_mmas_or_none() -> None:
    both = edit(_PAIR, ("        lm.mma(acc, a, b, init=True, ctas=2)", "        lm.mma(acc, a, b, init=True, ctas=2)\n        lm.mma(acc.cols(0, 64), a, b)"))
    assert codes(both) == ["H023"]


def test_an_mma_into_registers_has_no_pair() -> None:
    assert codes(edit(LOOP, ("init=(k == 0))", "init=(k == 0), ctas=2)"))) == ["H023"]
    assert codes(edit(TENSOR_MEMORY, ("init=True)", "init=True, ctas=3)"))) == ["H023"]


_VIEW = """
@cake.schedule(target={target})
def staged(lm, X: LM.gmem2d[{dtype}], Y: LM.gmem2d[{dtype}]):
    pool = lm.smem(40960)
    v = pool.view(offset={offset}, shape=(64, {cols}), dtype={dtype})
    work = lm.role(warps=range(0, 4))
    own = lm.named_barrier(work)
    with work:
        x = lm.load(X, coords=(0, 0), shape=(64, {cols}), form="acc")
        v.store(x)
        lm.sync(own)
        lm.store(Y, v.load(form="{form}"), coords=(0, 0))
"""


@pytest.mark.parametrize(
    ("target_name", "dtype", "cols", "offset", "form", "bad"),
    [
        ("sm_90a", "bf16", 64, 0, "acc", False),
        ("sm_90a", "bf16", 72, 0, "acc", False),  # rows of 144 bytes: padded against conflicts, still whole units of 16
        ("sm_90a", "bf16", 64, 8, "acc", True),  # a matrix store eight bytes off
        ("sm_80", "bf16", 64, 8, "acc", True),  # stored by words there, but read back by a matrix load
        ("sm_90a", "f32", 64, 8, "acc", False),  # pairs of f32: 8 bytes
        ("sm_90a", "f32", 64, 4, "acc", True),
        ("sm_90a", "f32", 64, 8, "vec", True),  # runs of 16 bytes
    ],
)
def test_shared_accesses_start_on_a_multiple_of_their_piece(target_name: str, dtype: str, cols: int, offset: int, form: str, bad: bool) -> None:
    text = _VIEW.format(target=f'"{target_name}"', dtype=f"LM.{dtype}", cols=cols, offset=offset, form=form).replace("dtype=LM.", "dtype=lm.")
    assert codes(text) == (["H017"] if bad else [])


def test_a_slice_inside_a_chunk_is_refused() -> None:
    text = _VIEW.format(target='"sm_90a"', dtype="LM.f32", cols=64, offset=0, form="acc").replace("dtype=LM.", "dtype=lm.")
    slices = text.replace('v.load(form="acc")', 'v.cols({0}, 8).load(form="acc")')
    assert codes(slices.replace("{0}", "4")) == []
    assert codes(slices.replace("{0}", "2")) == ["H017"]


def test_examples_stay_as_they_were() -> None:
    assert codes(COPY) == codes(LOOP) == codes(MULTICAST) == []
