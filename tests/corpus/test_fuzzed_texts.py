"""Whatever text it is given, the verifier answers: no traceback, no internal error, no wait of more than two seconds."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.verify.cases import CASES
from cake_verify import verify_text
from cake_verify.diagnostic import INTERNAL

LIMIT_S = 2.0
TEXTS = {name: case.text() for name, case in CASES.items()}
WORDS = ("0", "-1", "1", "3", "2**62", "1e400", "None", "True", '"128b"', "lm.inf", "lm.bf16", "lm", "()", "(1,)", "[]", "lm.step(ring)", "s", "s.prev(9)", "t.m",
         "math.index", "lm.cdiv(M, 0)", "lm.range(10**9)", "lm.frag", "pool", "x" * 80, "lambda: 0", "*", "'", "\u00e9", "\t", "\x00", "#", "\\\n")  # fmt: skip


def answers(text: str) -> None:
    started = time.perf_counter()
    verdict = verify_text(text, filename="fuzzed.py", default_target="sm_90a")
    spent = time.perf_counter() - started
    internal = [d.message for d in verdict.diagnostics if d.code == INTERNAL]
    assert not internal, internal
    assert verdict.verdict in ("pass", "fail", "undecided")
    for d in verdict.diagnostics:
        assert 1 <= d.span.line <= text.count("\n") + 2
        assert d.span.column >= 1
    assert verdict.to_text()
    assert verdict.to_json()["verdict"] == verdict.verdict
    assert spent < LIMIT_S


def shaken(text: str, rng: random.Random) -> str:
    """The text after one to three edits that a careless author or a confused agent could make."""
    for _ in range(rng.randint(1, 3)):
        lines = text.split("\n")
        i = rng.randrange(len(lines))
        kind = rng.randrange(8)
        if kind == 0:
            del lines[i]
        elif kind == 1:
            lines.insert(i, lines[rng.randrange(len(lines))])
        elif kind == 2:
            other = rng.choice(list(TEXTS.values())).split("\n")
            lines[i] = other[rng.randrange(len(other))]
        elif kind == 3:
            lines[i] = " " * rng.choice((1, 4, 8)) + lines[i]
        else:
            words = lines[i].replace("(", " ( ").replace(")", " ) ").replace(",", " , ").replace("=", " = ").split(" ")
            at = rng.randrange(len(words))
            words[at] = rng.choice(WORDS) if kind < 7 else rng.choice(words)
            lines[i] = (" " * (len(lines[i]) - len(lines[i].lstrip())) if kind < 7 else "") + " ".join(w for w in words if w)
        text = "\n".join(lines)
    return text


@pytest.mark.parametrize("name", TEXTS)
def test_a_shaken_schedule_gets_an_answer(name: str) -> None:
    rng = random.Random(name)
    for _ in range(12):
        answers(shaken(TEXTS[name], rng))


@given(st.text(max_size=400))
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
def test_any_text_gets_an_answer(text: str) -> None:
    answers(text)


@given(st.text(alphabet="()[]{}:=.,+-*/ \n\t'\"lmcake@defwithforinif0123456789", max_size=600))
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
def test_any_text_of_the_language_s_letters_gets_an_answer(text: str) -> None:
    answers("@cake.schedule(target=\"sm_90a\")\ndef f(lm):\n    work = lm.role(warps=range(0, 4))\n    with work:\n        " + text)


@pytest.mark.parametrize(
    "body",
    [
        "x = " + "(" * 300 + "1" + ")" * 300,
        "x = " + "+".join(["1"] * 20_000),
        "x = " + "-" * 5_000 + "1",
        "\n        ".join(f"x{i} = {i}" for i in range(5_000)),
        "for i in lm.range(10**12):\n            pass",
        "for i in lm.static_range(1024):\n            for j in lm.static_range(1024):\n                for k in lm.static_range(1024):\n                    lm.mma_wait(pending=0)",
        "x = [i for i in range(10**9)]",
        "x = 7 ** 63 ** 63",
    ],
)  # fmt: skip
def test_a_text_that_is_too_much_gets_an_answer(body: str) -> None:
    answers("@cake.schedule(target=\"sm_90a\")\ndef f(lm):\n    work = lm.role(warps=range(0, 4))\n    with work:\n        " + body)
