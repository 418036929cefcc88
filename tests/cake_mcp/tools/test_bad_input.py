"""Whatever is sent as a kernel: a located diagnostic within a second, nothing executed, nothing lost, a small answer."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp_clients import BareServer

import cake_kernels

GEMM = next(s.text for s in cake_kernels.schedules() if s.family == "gemm" and s.name == "hopper")
SECONDS = 4.0  # the promise is one second on a machine of its own; these are shared
ANSWER_CHARACTERS = 40_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BareServer]:
    server = BareServer(tmp_path_factory.mktemp("bad") / ".cake")
    server.call("verify", text=GEMM)  # the engine is imported by the first call
    yield server
    server.close()


def body(line: str) -> str:
    return GEMM.replace("    lm.assume(K > 0)\n", f"    lm.assume(K > 0)\n    {line}\n")


TEXTS = {
    "not python": "for the win (",
    "empty": "",
    "a NUL": "x = 1\0",
    "control characters": "x = '\x1b[31m\x07'",
    "other python": "import os\nclass A:\n    def f(self):\n        return os.system('true')\n",
    "execution at import": "open('/tmp/cake-was-executed', 'w').write('x')\n",
    "a while loop": body("while True: pass"),
    "attribute tricks": body("x = ().__class__.__bases__[0].__subclasses__()"),
    "a lambda": body("f = lambda x: x"),
    "an inner import": body("import subprocess"),
    "a huge comprehension": body("x = [i for i in range(2**31)]"),
    "nested comprehensions": body("x = [i + j for i in range(4000) for j in range(4000)]"),
    "a huge power": body("x = 9 ** 9 ** 9 ** 9"),
    "a huge shift": body("x = 1 << 10 ** 9"),
    "a huge literal": body("x = " + "9" * 100_000),
    "deep nesting": body("x = " + "(" * 5_000 + "1" + ")" * 5_000),
    "deep indices": body("x = a" + "[0]" * 5_000),
    "long sums": body("x = " + " + ".join(["1"] * 50_000)),
    "one megabyte": GEMM + "# " + "x" * 1_000_000,
    "a megabyte of lines": GEMM + "\n" * 1_000_000,
    "many schedules": "\n\n".join(GEMM.replace("def gemm_ws", f"def gemm_{i}") for i in range(25)),
    "many roles": body("\n    ".join(f"r{i} = lm.role(warps=[{i}])" for i in range(2_000))),
    "a range of 2^31": GEMM.replace("for k in lm.range(kt):", "for k in lm.range(2**31):"),
    "a static range of 2^31": GEMM.replace("lm.static_range(BN // CW)", "lm.static_range(2**31)"),
    "a name with markup": GEMM.replace("smem_a", "smem_a\u202e"),
    "a very long name": GEMM.replace("smem_a", "s" * 5_000),
    "an unknown operation": body("lm.teleport(A)"),
    "an unknown target": GEMM.replace("sm_90a", "sm_95z"),
    "ring of ten million": GEMM.replace("stages=STAGES", "stages=10_000_000"),
    "negative stages": GEMM.replace("stages=STAGES", "stages=-1"),
    "zero division": body("x = 1 // 0"),
    "text for a number": body("x = 'a' * 10 ** 9"),
}


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_any_text_gets_a_located_answer_in_time(server: BareServer, name: str) -> None:
    text = TEXTS[name]
    begin = time.monotonic()
    result = server.call("propose_candidate", text=text) if text else server.call("verify", text="\n")
    assert time.monotonic() - begin < SECONDS
    assert result["isError"] is False, result["content"][0]["text"]
    answer = result["structuredContent"]
    assert answer["verdict"] in ("fail", "undecided") or name in ("one megabyte", "a megabyte of lines", "many schedules")
    lines = text.count("\n") + 2
    for diagnostic in answer["diagnostics"]:
        assert 1 <= diagnostic["span"]["line"] <= lines and diagnostic["span"]["column"] >= 1
        assert "Cake itself failed" not in diagnostic["message"], diagnostic
    assert answer["verdict"] == "pass" or answer["diagnostics"]
    assert len(json.dumps(result)) < ANSWER_CHARACTERS
    assert not Path("/tmp/cake-was-executed").exists()


@pytest.mark.parametrize(
    "params",
    [
        {"STAGES": 10**30},
        {"STAGES": -1},
        {"STAGES": 0},
        {"STAGES": "four"},
        {"STAGES": 1.5},
        {"STAGES": True},
        {"NOTHING": 1},
        {"BN": 2**40},
        {"a\nb": 1},
        {"__class__": 1},
        {"BN": 0},
    ],
)
def test_absurd_parameters_get_a_located_answer(server: BareServer, params: dict) -> None:
    begin = time.monotonic()
    result = server.call("verify", text=GEMM, params=params)
    assert time.monotonic() - begin < SECONDS
    assert result["isError"] is False
    answer = result["structuredContent"]
    assert answer["verdict"] == "fail" and answer["diagnostics"][0]["span"]["line"] >= 1
    assert not any("Cake itself failed" in d["message"] for d in answer["diagnostics"])


def test_many_findings_come_in_pages_with_the_right_total(server: BareServer) -> None:
    text = GEMM + "".join(f"\n\n@cake.schedule(target='sm_90a')\ndef broken_{i}(lm):\n    lm.teleport_{i}()\n" for i in range(60))
    seen: list[str] = []
    offset: int | None = 0
    while offset is not None:
        answer = server.call("verify", text=text, max_diagnostics=25, offset=offset)["structuredContent"]
        assert len(json.dumps(answer)) < ANSWER_CHARACTERS
        seen += [f"{d['span']['line']}:{d['message']}" for d in answer["diagnostics"]]
        offset = answer.get("next_offset")
    assert len(seen) == len(set(seen)) == sum(answer["counts"].values()) >= 60


def test_control_characters_never_reach_an_answer(server: BareServer) -> None:
    result = server.call("verify", text="x = lm.\x1b[31mred\x07\u202e()\n")
    assert not any(character in json.dumps(result, ensure_ascii=False) for character in ("\x1b", "\x07", "\u202e"))
