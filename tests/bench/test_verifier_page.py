"""The page of the mutation benchmark is the one that its recorded run gives."""

import json

from bench.verify.mutate import VALUES
from bench.verify.page import DOUBLES, PAGE, RESULTS, page

OWN_OUTPUT = ("running_sum/", "gemm_serial_k/")
"""Schedules that read what they write: whether a tensor holds something before the launch, and what its flags mean after it, no text says."""


def test_the_page_is_current() -> None:
    assert PAGE.read_text("utf-8") == page(json.loads(RESULTS.read_text("utf-8")), json.loads(DOUBLES.read_text("utf-8")))


def test_the_recorded_run_meets_its_bars() -> None:
    report = json.loads(RESULTS.read_text("utf-8"))
    total = report["total"]
    assert not [g for g in report["schedules"] if g["verdict"] != "pass"]
    assert total["caught"] >= 0.99 * total["harmful"] and total["mutants"] > 1000
    for r in report["classes"]:
        if r["class"] not in VALUES and r["harmful"] >= 10:
            missed = [key for key in r["missed"] if not key.startswith(OWN_OUTPUT)]
            assert len(missed) <= 0.04 * r["harmful"], (r["class"], r["missed"])
    assert len(total["false_alarms"]) <= 0.005 * total["harmless"] and total["undecided"] <= 0.01 * (total["harmful"] + total["harmless"])
    assert total["primary"] >= 0.70 * total["caught"] and total["first_four"] >= 0.88 * total["caught"] and total["right_role"] >= 0.95 * total["role_known"]
    assert total["repairs"].get("good", 0) >= 0.60 * total["repairs_tried"] and total["searches"].get("good", 0) >= 0.75 * total["searches_tried"]


def test_two_mistakes_do_not_hide_each_other() -> None:
    total = json.loads(DOUBLES.read_text("utf-8"))["total"]
    assert total["harmful"] >= 1000 and total["caught"] >= 0.99 * total["harmful"] and total["contract"] == total["contract_caught"]
    assert total["primary"] >= 0.70 * total["caught"] and total["first_four"] >= 0.88 * total["caught"] and total["right_role"] >= 0.95 * total["role_known"]
