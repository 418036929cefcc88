"""Programs survive the way through JSON."""

import json
from pathlib import Path

import pytest

from cake_ir import parse, specialise
from cake_ir.canonical import content_hash
from cake_ir.json import ProgramFormatError, from_json, to_json

TESTS = Path(__file__).parents[2]
TEXTS = {p.stem: p.read_text("utf-8") for folder, pattern in (("examples", "*.py"), ("cake_ir/printer", "*.txt")) for p in sorted((TESTS / folder).glob(pattern))}


def program(text):
    made = specialise(parse(text).schedules[0])
    assert made.program is not None
    return made.program


@pytest.mark.parametrize("name", TEXTS)
def test_a_program_comes_back_equal_with_spans_and_all(name):
    before = program(TEXTS[name])
    text = json.dumps(to_json(before), allow_nan=False)
    after = from_json(json.loads(text))
    assert content_hash(after) == content_hash(before)
    assert to_json(after) == to_json(before)
    assert [op.span for op in after.ops] == [op.span for op in before.ops]
    assert after.threads == before.threads and after.views.keys() == before.views.keys()


def test_the_walk_of_a_program_from_json_is_the_same():
    from cake_ir.walk import compile_roles

    before = program(TEXTS["gemm_ws"])
    assert compile_roles(from_json(json.loads(json.dumps(to_json(before))))).source == compile_roles(before).source


@pytest.mark.parametrize("data", [None, [], 3, {}, {"schema": 0}, {"schema": 1}, {"schema": 1, "name": "x"}])
def test_what_is_no_program_is_refused(data):
    with pytest.raises(ProgramFormatError):
        from_json(data)


def test_a_record_of_unknown_kind_is_refused():
    data = to_json(program(TEXTS["rmsnorm"]))
    data["decls"][0]["is"] = "Path"
    with pytest.raises(ProgramFormatError):
        from_json(data)


def test_a_missing_operation_is_noticed():
    data = to_json(program(TEXTS["rmsnorm"]))
    del data["body"][0]["body"][0]
    with pytest.raises(ProgramFormatError):
        from_json(data)
