"""Bytes that several sends of one phase bring: nothing orders them."""

from __future__ import annotations

from pathlib import Path

from cake_verify import verify_text

CORPUS = Path(__file__).resolve().parents[3] / "bench" / "verify" / "corpus"
MERGE, SOFTMAX = ((CORPUS / f"{name}.py").read_text("utf-8") for name in ("decode_cluster_merge", "cluster_softmax"))


def found(text: str, old: str, new: str) -> list[tuple[str, str]]:
    assert text.count(old) == 1, old
    return [(d.code, d.message) for d in verify_text(text.replace(old, new), suggest=False).errors]


def test_sends_of_one_phase_bring_bytes_of_their_own() -> None:
    ((code, message),) = found(MERGE, "all_m = pool.view(offset=base + RANKS * G * D * 4,", "all_m = pool.view(offset=base + RANKS * G * D * 4 - 1024,")
    assert code in ("S003", "S007") and "all_m" in message and "all_o" in message


def test_ctas_that_send_to_one_row_are_told() -> None:
    errors = found(SOFTMAX, "tops[s].rows(t.q, 1).send(", "tops[s].rows(0, 1).send(")
    assert errors == [("S003", "CTAs 0 and 1 of the cluster send to the same bytes of `tops`, and nothing orders them")]
    errors = found(SOFTMAX, "tops[s].rows(t.q, 1).send(", "sums[s].rows(t.q, 1).send(")
    assert [code for code, _ in errors] == ["S003"] and "brings bytes of `sums` that another send of the same phase brings" in errors[0][1]


def test_sends_to_rows_of_their_own_pass() -> None:
    for text in (MERGE, SOFTMAX):
        assert verify_text(text).verdict == "pass"
