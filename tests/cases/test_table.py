"""The committed table says what the tests hold."""

import re

from table import CASES, PATH, table

EXPECTED = {
    "construct": "C001 C003 C005 C007",
    "safety": "C008 C010 C012 C014 C016 C018 C020 C022 C024 C026 C028 C030 C031 C032 C034 C035 C036 C037 C038",
    "schedule": "C040 C042 C044 C046 C048 C050 C051",
    "consistency": "C052 C054 C056 C058 C060 C062 C064 C066 C067 C068",
    "conformance": "C069 C071 C073 C075 C076 C077 C079 C081 C083 C084 C085",
}


def test_every_case_of_the_five_gates_is_there_once() -> None:
    for gate, numbers in EXPECTED.items():
        assert [c.number for c in CASES if c.gate == gate] == numbers.split()


def test_every_case_has_a_control_and_a_source_and_a_bad_input_unless_it_is_derived() -> None:
    for c in CASES:
        assert c.good and c.source and c.fault and c.near, c.number
        assert c.bad or c.outcome in ("derived", "result"), c.number
        assert c.remark or c.outcome == "caught" or c.outcome == "derived", c.number


def test_the_committed_table_is_current() -> None:
    assert PATH.read_text("utf-8") == table(), "run: python tests/cases/table.py"


def test_every_code_of_the_table_has_a_page() -> None:
    for code in set(re.findall(r"codes/([A-Z]\d{3})\.md", table())):
        assert (PATH.parent / "codes" / f"{code}.md").exists()
