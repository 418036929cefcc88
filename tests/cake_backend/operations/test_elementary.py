"""Functions of one value and division: what they expand to, on both machines, within the errors that the language states."""

from pathlib import Path

import numpy as np
import pytest
from vertical import agree, compiles, generated, passes, program, simulated

FUNCTIONS = ("exp2", "exp", "log2", "log", "rcp", "rsqrt", "sqrt", "tanh", "sigmoid", "silu", "gelu", "erf")
COUNT = 1024

TEXT = """
@cake.schedule(target=("sm_80", "sm_90a"))
def elementary(lm, X: LM.gmem1d[LM.f32, 1024], Z: LM.gmem1d[LM.f32, 1024], Y: LM.gmem2d[LM.f32, 14, 1024]):
    lm.launch(grid="tiles")
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="grid", tiles=(1,), names=("m",))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0,), shape=(1024,))
            z = lm.load(Z, coords=(0,), shape=(1024,))
            lm.store(Y, x / z, coords=(0, 12))
            lm.store(Y, lm.div(x, z), coords=(0, 13))
""" + "".join(f"            lm.store(Y, lm.{f}(x), coords=(0, {i}))\n" for i, f in enumerate(FUNCTIONS))


def arguments() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.uniform(-80, 80, 400), rng.standard_normal(400), 10.0 ** rng.uniform(-30, 30, 200), [0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 2]])
    x = np.resize(x, COUNT).astype(np.float32)
    z = (rng.standard_normal(COUNT) * 10.0 ** rng.uniform(-30, 30, COUNT)).astype(np.float32)
    z[:8] = [0, -0.0, np.inf, -np.inf, np.nan, 3, 2.0**-140, 2.0**127]
    return x, z


def test_both_machines_expand_a_function_alike(tmp_path: Path) -> None:
    x, z = arguments()
    tensors = {"X": x, "Z": z, "Y": np.zeros((14, COUNT), np.float32)}
    passes(TEXT)
    compiles(TEXT, "sm_90a")
    with np.errstate(all="ignore"):
        got, printed = simulated(TEXT, tensors), generated(TEXT, tensors, {}, tmp_path)
    erf = FUNCTIONS.index("erf")
    assert np.allclose(got["Y"][erf], printed["Y"][erf], rtol=2**-22, equal_nan=True)
    for t in (got, printed):
        t["Y"][erf] = 0
        t["Y"][np.isnan(t["Y"])] = np.nan  # which NaN does not matter
    agree(got, printed)
    with np.errstate(all="ignore"):
        assert np.array_equal(got["Y"][13], x / z, equal_nan=True)  # lm.div rounds correctly, subnormals included
        assert (np.isnan(got["Y"][13]) | (got["Y"][13] == x / z)).all()


def test_division_has_two_forms() -> None:
    text = compiles(TEXT, "sm_80")
    assert "__fdiv_rn(x[" in text and "__fmul_rn(x[" in text


UNIT = 2.0**-23
ERRORS = {  # of one instruction: relative, or absolute for log2 near 1
    "exp2": 2 * UNIT, "rcp": UNIT, "tanh": 2.0**-11, "log2": 2.0**-22,
}  # fmt: skip
X = np.linspace(-60, 60, 20001).astype(np.float32)


def perturbed(name: str, y: np.ndarray, sign: float) -> np.ndarray:
    """An instruction's result at the end of its stated error, rounded to f32."""
    return (y * (1 + sign * ERRORS[name])).astype(np.float32)


def expanded(name: str, x: np.ndarray, sign: float) -> np.ndarray:
    """The documented expansion in f32, each instruction off by as much as it may be."""
    f32 = np.float32
    wide = lambda f, y: f(y.astype(np.float64))  # noqa: E731
    if name == "exp":
        return perturbed("exp2", wide(np.exp2, x * f32(1.4426950408889634)), sign)
    if name in ("sigmoid", "silu"):
        e = perturbed("exp2", wide(np.exp2, x * f32(-1.4426950408889634)), sign)
        s = perturbed("rcp", 1 / (f32(1) + e).astype(np.float64), -sign)
        return s if name == "sigmoid" else x * s
    if name == "gelu":
        inner = f32(0.7978845608028654) * (x + f32(0.044715) * x * x * x)
        return f32(0.5) * x * (f32(1) + perturbed("tanh", wide(np.tanh, inner), sign))
    raise KeyError(name)


def exact(name: str, x: np.ndarray) -> np.ndarray:
    x = x.astype(np.float64)
    if name == "exp":
        return np.exp(x)
    if name == "gelu":
        return 0.5 * x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x**3)))
    s = 1 / (1 + np.exp(-x))
    return s if name == "sigmoid" else x * s


BOUNDS = {
    "exp": lambda x, y: (3 + 0.8 * np.abs(x)) * UNIT * y,
    "sigmoid": lambda x, y: (5 + 0.8 * np.maximum(-x, 0)) * UNIT * y,
    "silu": lambda x, y: (6 + 0.8 * np.maximum(-x, 0)) * UNIT * np.abs(y),
    "gelu": lambda x, y: 2.0**-11 * np.abs(x) * 0.51 + 8 * UNIT * np.abs(x),
}
"""What the page of the language says of each expansion."""


@pytest.mark.parametrize("name", BOUNDS)
def test_an_expansion_stays_within_its_stated_error(name: str) -> None:
    y = exact(name, X)
    for sign in (-1.0, 0.0, 1.0):
        error = np.abs(expanded(name, X, sign).astype(np.float64) - y)
        assert (error <= BOUNDS[name](X.astype(np.float64), y) + 1e-38).all(), (name, sign)


def test_a_uniform_quotient_has_both_forms() -> None:
    text = TEXT.replace("Y: LM.gmem2d[LM.f32, 14, 1024]", "Y: LM.gmem2d[LM.f32, 14, 1024], a: LM.f32, b: LM.f32")
    text = text.replace("x = lm.load(X, coords=(0,), shape=(1024,))", "x = lm.load(X, coords=(0,), shape=(1024,)) * (a / b) + lm.div(a, b)")
    assert program(text).scalars
    printed = compiles(text, "sm_90a")
    assert "__fmul_rn(a, rcp_approx(b))" in printed and "__fdiv_rn(a, b)" in printed


FMA_EXP2 = """
@cake.schedule(target=("sm_80", "sm_90a"))
def powers(lm, X: LM.gmem1d[LM.f32, 1024], Y: LM.gmem1d[LM.f32, 1024]):
    lm.launch(grid="tiles")
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="grid", tiles=(1,), names=("m",))
    with work:
        for t in lm.tiles(sched):
            lm.store(Y, lm.exp2_fma(lm.load(X, coords=(0,), shape=(1024,))), coords=(0,))
"""


def test_a_power_of_two_on_the_fma_units_is_a_polynomial_within_its_error(tmp_path: Path) -> None:
    x = np.concatenate([np.linspace(-130, 127, 900), np.random.default_rng(1).uniform(-2, 0, 120), [-np.inf, np.nan, 0.5, -0.5]]).astype(np.float32)
    tensors = {"X": x, "Y": np.zeros(COUNT, np.float32)}
    passes(FMA_EXP2)
    text = compiles(FMA_EXP2, "sm_90a")
    assert "ex2" not in text
    got = simulated(FMA_EXP2, tensors)
    agree(got, generated(FMA_EXP2, tensors, {}, tmp_path))
    want = np.exp2(np.fmax(x, -126).astype(np.float64))
    least = want < 2.0**-125.5  # below -126 and NaN count as -126, where the last bits are subnormal
    assert (np.abs(got["Y"] / want - 1) < np.where(least, 1.5e-4, 7.6e-5)).all()
