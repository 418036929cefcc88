"""Any text gets a located answer within a second, and nothing of it is executed."""

import json
import time

import pytest

from cake_verify import verify_text
from cake_verify.rules.examples import COPY, LOOP, TILE


def role(body="        pass", decls=""):
    head = '@cake.schedule(target="sm_90a")\ndef f(lm, X: LM.gmem1d[LM.f32], N: LM.i32):\n'
    return f"{head}{decls}    work = lm.role(warps=range(0, 4))\n    with work:\n{body}\n"


def nested(word, n):
    return "\n".join("    " * (2 + i) + f"{word}:".replace("%", str(i)) for i in range(n)) + "\n" + "    " * (2 + n) + "lm.pdl_wait()"


# name: (text, code expected first, line expected)
REFUSED = {
    "empty": ("", "N004", 1),
    "prose": ("hello world, this is not python", "N001", 1),
    "NUL": ("a\x00b", "N001", 1),
    "lone surrogate": ('\nx = "\ud800"', "N001", 2),
    "unclosed": (COPY + "\n(((", "N001", None),
    "brackets 5000 deep": ("(" * 5000, "N002", 1),
    "subscripts 5000 deep": ("x" + "[0]" * 5000, "N002", None),
    "minus signs": ("-" * 20000 + "1", "N002", None),
    "a sum of 5000": (role("        y = " + "+".join(["N"] * 5000)), "N002", None),
    "a comparison of 3000": (role("        y = " + "<".join(["N"] * 3000)), "N002", 5),
    "a minimum of 5000": (role("        y = lm.min(" + ",".join(["N"] * 5000) + ")"), "N002", 5),
    "a condition of 3000": (role("        if " + " and ".join(["N > 0"] * 3000) + ":\n            pass"), "N002", 5),
    "a megabyte of lines": ("x = 1\n" * 200_000, "N002", 1),
    "a megabyte of one name": ("x" * 1_000_000, "N002", 1),
    "a megabyte of comment": ("#" * 1_000_000, "N002", 1),
    "import at the top": ("import os\n" + COPY, "N003", 1),
    "import inside": (role("        import os"), "N005", 5),
    "dunder attribute": (role("        X.__class__.__bases__"), "N005", 5),
    "dunder call": (role("        lm.__init__()"), "N005", 5),
    "eval": (role('        eval("1")'), "N006", 5),
    "lambda": (role("        f = lambda: 1"), "N005", 5),
    "f-string": (role('        x = f"{N}"'), "N005", 5),
    "walrus": (role("        (y := 3)"), "N005", 5),
    "star": (role("        lm.store(*X)"), "N005", 5),
    "bytes": (role('        x = b"abc"'), "N005", 5),
    "class": ("class A: pass", "N003", 1),
    "async": ("async def f(): pass", "N003", 1),
    "comprehension over 2**31": (role(decls="    xs = [i for i in range(2**31)]\n"), "N020", 3),
    "comprehension of comprehensions": (role(decls="    xs = [sum([j for j in range(4000)]) for i in range(4000)]\n"), "N020", 3),
    "9**9**9": (role(decls="    x = 9**9**9\n"), "N022", 3),
    "2**124": (role(decls="    x = 2**62 * 2**62\n"), "N022", 3),
    "a tuple of 10**9": (role(decls="    x = (1,) * 10**9\n"), "N022", 3),
    "a shift by 10**9": (role(decls="    x = 1 << 10**9\n"), "N022", 3),
    "a string of 10**9": (role(decls='    x = "a" * 10**9\n'), "N022", 3),
    "static_range(2**31)": (role("        for i in lm.static_range(2**31):\n            lm.pdl_wait()"), "N020", 5),
    "fifty loops": (role(nested("for i% in lm.range(N)", 50)), "N002", 21),
    "a name with an umlaut": (role("        ä = 1"), "N012", 5),
    "a name of 500 letters": (role("        " + "x" * 500 + " = 1"), "N012", 5),
    "markup in a coordinate": (COPY.replace("coords=(0,), shape", 'coords=("<script>\\n",), shape'), "N021", 6),
    "two parameters of one name": ("@cake.schedule()\ndef f(lm, A: LM.i32, A: LM.i32):\n    pass", "N052", 2),
    "no receiver": ("@cake.schedule()\ndef f():\n    pass", "N014", 2),
    "recursion": ("@cake.schedule()\ndef f(lm):\n    f(lm)", "N006", 3),
    "4000 warps": (COPY.replace("range(0, 4)", "range(0, 4000)"), "N058", 4),
    "2**31 warps": (COPY.replace("range(0, 4)", "range(0, 2**31)"), "N020", 4),
    "a pool of 2**62": (TILE.replace("24576", "2**62"), "N055", 4),
    "a view of 2**60": (TILE.replace("shape=(128, 64)", "shape=(2**30, 2**30)"), "N057", 6),
    "a million stages": (LOOP.replace("stages=2", "stages=10**6"), "N055", None),
    "a fragment of 2**31": (COPY.replace("(512,)", "(2**31,)"), "D026", 6),
    "a grid of 2**40": (LOOP.replace("lm.cdiv(M, 64)", "2**40").replace('"persistent"', '"tiles"').replace('"static"', '"grid"'), "H007", None),
    "a division by zero": (LOOP.replace("lm.cdiv(K, 64)", "K // 0"), "N022", None),
}

# Texts that are odd and mean something: no error of Cake, whatever the verdict.
ODD = {
    "Windows line ends": COPY.replace("\n", "\r\n"),
    "old Macintosh line ends": COPY.replace("\n", "\r"),
    "tabs": COPY.replace("    ", "\t"),
    "range(2**31)": role("        for i in lm.range(2**31):\n            lm.pdl_wait()"),
    "10**4 x 10**4 iterations": role("        for i in lm.range(10**4):\n            for j in lm.range(10**4):\n                lm.pdl_wait()"),
    "fifty branches": role(nested("if N > %", 50)),
    "3000 operations": role("\n".join(["        lm.pdl_wait()"] * 3000)),
    "7000 assignments": role("\n".join(["        y = N + 1"] * 7000)),
    "a bound of K * 10**6": LOOP.replace("lm.cdiv(K, 64)", "K * 1000000"),
    "assumptions that contradict": LOOP.replace("K > 0", "K > 0 and K < 0"),
    "a divisor that is zero at run time": LOOP.replace("lm.cdiv(K, 64)", "K // (K - K)"),
}


def verified(text, **options):
    start = time.process_time()  # of this process: the machine may be busy with something else
    verdict = verify_text(text, **options)
    json.dumps(verdict.to_json(limit=None), allow_nan=False)
    verdict.to_text()
    return verdict, time.process_time() - start


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_where_it_is_wrong(name):
    text, code, line = REFUSED[name]
    verdict, _ = verified(text)
    assert verdict.verdict == "fail"
    assert verdict.diagnostics[0].code == code
    assert line is None or verdict.diagnostics[0].span.line == line
    assert not [d for d in verdict.diagnostics if d.code == "N999"]


@pytest.mark.parametrize("name", ODD)
def test_it_is_odd_and_answered(name):
    verdict, _ = verified(ODD[name])
    assert not [d for d in verdict.diagnostics if d.code == "N999"]


@pytest.mark.parametrize("name", [*REFUSED, *ODD])
def test_the_answer_comes_within_a_second(name):
    text = REFUSED[name][0] if name in REFUSED else ODD[name]
    assert min(verified(text)[1] for _ in range(2)) < 1.0


@pytest.mark.parametrize(
    "params",
    [{"N": 2**70}, {"N": "x" * 10_000}, {"N": None}, {"N": {}}, {"N": [1] * 1000}, {"N": float("nan")}, {"N\n<b>": 1}, {"": 1}, {"N": -5}, {"N": 0}, {"N": 10**9}],
    ids=["2**70", "long", "None", "mapping", "list", "nan", "markup", "empty name", "-5", "0", "10**9"],
)  # fmt: skip
def test_absurd_parameters_are_faults(params):
    text = COPY.replace("Y: LM.gmem1d[LM.f32]", "Y: LM.gmem1d[LM.f32], *, N=512").replace("shape=(512,)", "shape=(N,)")
    verdict, _ = verified(text, params=params)
    assert verdict.verdict == "fail"
    assert verdict.diagnostics[0].code in ("N030", "N031", "N045", "D026")
    assert "<b>" not in verdict.to_text()


def test_nothing_is_executed(tmp_path):
    mark = tmp_path / "mark"
    text = f'open({str(mark)!r}, "w")\n' + role(f"        open({str(mark)!r}, 'w')").replace("lm.role", f"__import__('pathlib').Path({str(mark)!r}).touch() or lm.role")
    assert verified(text)[0].verdict == "fail"
    assert not mark.exists()


def test_hundreds_of_faults_are_cut_off_quickly():
    text = role("\n".join(f"        y{i} = lm.write{i}(z{i})" for i in range(5000)))
    verdict, seconds = verified(text)
    assert verdict.verdict == "fail" and 20 <= len(verdict.errors) <= 60
    assert seconds < 2.0
