"""Programs print as text that means the same."""

from pathlib import Path

import pytest

from cake_ir import parse, specialise
from cake_ir.canonical import canonical_form, equal
from cake_ir.ops import SPECS
from cake_ir.printer import print_program

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
TEXTS = {
    path.stem: path.read_text("utf-8")
    for folder, pattern in ((HERE, "*.txt"), (ROOT / "tests" / "examples", "*.py"), (ROOT / "cake_kernels", "*/[ah]*.py"))
    for path in sorted(folder.glob(pattern))
}


def programs(text, target=None):
    module = parse(text)
    assert not module.faults
    made = [specialise(template, target=target) for template in module.schedules]
    assert all(m.program is not None for m in made), [f"{f.code} {f.message} {f.span}" for m in made for f in m.faults]
    return [m.program for m in made]


@pytest.mark.parametrize("name", TEXTS)
def test_what_is_printed_parses_back_to_an_equal_program(name):
    for program in programs(TEXTS[name]):
        text = print_program(program)
        (again,) = programs(text)
        assert canonical_form(again) == canonical_form(program)
        assert equal(again, program)
        assert print_program(again) == text


def test_the_texts_here_use_every_operation_of_the_vocabulary():
    used = set()
    for text in TEXTS.values():
        for program in programs(text):
            for op in program.ops:
                used.add(op.name)
                for operand in op.operands.values():
                    for e in operand if isinstance(operand, tuple) else (operand,):
                        used |= {node.op for node in e.parts()} if e is not None else set()
    missing = {name for _, name in SPECS} - used
    assert not missing


def test_a_name_that_would_hide_a_word_of_the_language_is_moved_aside():
    text = '''
@cake.schedule(target="sm_90a")
def copy(k, X: LM.gmem1d[LM.f32], Y: LM.gmem1d[LM.f32]):
    lm = k.role(warps=range(0, 4))
    with lm:
        x = k.load(X, coords=(0,), shape=(512,))
        k.store(Y, x, coords=(0,))
'''
    (program,) = programs(text)
    printed = print_program(program)
    assert "lm_ = lm.role(" in printed and "with lm_:" in printed
    assert equal(programs(printed)[0], program)


def test_compile_time_values_are_folded():
    text = '''
@cake.schedule(target="sm_90a")
def copy(lm, X: LM.gmem1d[LM.f32], Y: LM.gmem1d[LM.f32], *, N=256, TWICE=True):
    work = lm.role(warps=range(0, 4))
    sizes = [N * (i + 1) for i in range(3)]
    with work:
        if TWICE:
            x = lm.load(X, coords=(sizes[1] - N,), shape=(2 * N,))
        else:
            x = lm.load(X, coords=(0,), shape=(N,))
        lm.store(Y, x, coords=(0,))
'''
    (program,) = programs(text)
    assert print_program(program) == '''\
@cake.schedule(target="sm_90a")
def copy(lm, X: LM.gmem1d[LM.f32], Y: LM.gmem1d[LM.f32]):
    work = lm.role(warps=range(0, 4))
    with work:
        x = lm.load(X, coords=(256,), shape=(512,))
        lm.store(Y, x, coords=(0,))
'''
