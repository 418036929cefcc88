"""What stands between a client's call and a tool."""

from types import SimpleNamespace
from typing import Annotated, Any

import anyio
import pytest
from pydantic import Field

from cake_mcp import binding
from cake_mcp.binding import Answer, Arguments, Reporter, ToolSpec, bind
from cake_mcp.operations.misuse import Misuse
from cake_mcp.store import StoreBusy


class Asked(Arguments):
    """Arguments of the probe."""

    text: Annotated[str, Field(description="Text")] = ""
    number: Annotated[int, Field(description="Number", ge=0, le=9)] = 0
    table: Annotated[dict[str, int], Field(description="Table")] = Field(default_factory=dict)
    maybe: Annotated[float | None, Field(description="Perhaps")] = None


class Told(Answer):
    """Answer of the probe."""

    summary: str = Field(description="What was asked")
    ok: bool = Field(description="Whether")
    worst: float | None = Field(default=None, description="A figure")


def call(run: Any, **arguments: Any) -> Any:
    spec = ToolSpec("probe", "Probe", "A probe.", Asked, Told, lambda answer: answer.summary, run, True, True)
    tool = bind(spec, SimpleNamespace())
    reported: list[tuple[float, str]] = []

    async def report_progress(progress: float, total: float, message: str) -> None:
        reported.append((progress, message))

    async def session() -> Any:
        return await tool.run(arguments, SimpleNamespace(report_progress=report_progress), convert_result=True)

    result = anyio.run(session)
    return SimpleNamespace(
        error=bool(result.is_error), text=result.content[0].text, structured=result.structured_content, reported=reported
    )


async def echo(state: Any, arguments: Asked, report: Reporter) -> Told:
    return Told(summary=f"{arguments.text!r} {arguments.number} {arguments.table} {arguments.maybe}", ok=True, worst=float("inf"))


def raising(error: Exception) -> Any:
    async def run(state: Any, arguments: Asked, report: Reporter) -> Told:
        raise error

    return run


def test_absent_fields_are_left_out_and_non_finite_numbers_are_text() -> None:
    assert call(echo, text="x").structured == {"summary": "'x' 0 {} None", "ok": True, "worst": "inf"}


@pytest.mark.parametrize("text", ['{"a": 1}', "[1]", "null", "1", "true", " x\r\n\t"])
def test_text_is_never_parsed(text: str) -> None:
    assert call(echo, text=text).structured["summary"].startswith(repr(text))


def test_structures_and_numbers_sent_as_text_are() -> None:
    assert call(echo, table='{"a": 1}', number="3", maybe="0.5").structured["summary"] == "'' 3 {'a': 1} 0.5"


def test_an_explicit_null_is_as_good_as_nothing() -> None:
    assert call(echo, text=None, maybe=None, table=None).structured["summary"] == "'' 0 {} None"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"numbr": 1}, "`probe` has no argument `numbr`; did you mean `number`? it takes: text, number, table, maybe"),
        ({"zzz\x1b": 1}, "no argument `zzz\ufffd`; it takes"),
        ({"number": 10}, "`number`: input should be less than or equal to 9, found 10"),
        ({"number": "many"}, "`number`: input should be a valid integer"),
        ({"table": "[1]"}, "`table`: input should be a valid dictionary"),
        ({"text": {"a": "x" * 10_000}}, "`text`: input should be a valid string"),
    ],
)
def test_wrong_arguments_are_named_and_never_echoed_at_length(arguments: dict[str, Any], message: str) -> None:
    result = call(echo, **arguments)
    assert result.error and message in result.text and len(result.text) < 400 and "pydantic" not in result.text


def test_misuse_keeps_its_words_and_an_unexpected_error_keeps_its_secrets() -> None:
    assert call(raising(Misuse("no such thing; there are: a, b"))).text == "no such thing; there are: a, b"
    result = call(raising(RuntimeError("/secret/path of someone")))
    assert result.error and "secret" not in result.text and "RuntimeError" in result.text
    assert "call again" in call(raising(StoreBusy("locked"))).text


def test_a_tool_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binding, "ANSWER_SECONDS", 0.05)

    async def sleep(state: Any, arguments: Asked, report: Reporter) -> Told:
        await anyio.sleep(60)
        raise AssertionError

    result = call(sleep)
    assert result.error and "no answer within" in result.text


def test_progress_always_grows() -> None:
    async def run(state: Any, arguments: Asked, report: Reporter) -> Told:
        for value in (0.1, 0.1, 0.05, 0.9):
            await report(value, "at work")
        return Told(summary="done", ok=True)

    values = [progress for progress, _ in call(run).reported]
    assert values == sorted(set(values)) and len(values) == 4


def test_schemas_have_no_definitions_no_titles_and_no_null_unions() -> None:
    schema = binding.flat_schema(Asked)
    assert schema["properties"]["maybe"] == {"description": "Perhaps", "type": "number"}
    assert schema["additionalProperties"] is False and "title" not in schema and "required" not in schema
