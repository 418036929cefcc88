"""Binds Cake's tools to the SDK: strict arguments, schemas that every client reads, complete structured answers with a short text twin.

The SDK's own binding ignores unknown arguments, parses strings that look like JSON, and publishes `$ref` and null unions that several
clients cannot read. This module is the only one that touches those internals.
"""

import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from difflib import get_close_matches
from types import UnionType
from typing import Any, Literal, Protocol, Union, get_args, get_origin

import anyio
import anyio.to_thread
from mcp.server.mcpserver.tools import Tool
from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase, FuncMetadata
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import BaseModel, ConfigDict, ValidationError

from .cleaning import clip
from .operations.misuse import Misuse
from .store.encoding import plain

ANSWER_SECONDS = 19.0  # every call answers within 20 s
_ERROR_CHARACTERS = 2_000

log = logging.getLogger(__name__)


class Arguments(BaseModel):
    """Base of every tool's input: a field is an argument; anything else is refused by name."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=False)


class Answer(BaseModel):
    """Base of every tool's output."""

    model_config = ConfigDict(extra="forbid")


class Reporter(Protocol):
    """Tells the client how far a call is; a no-op where it did not ask."""

    async def __call__(self, progress: float, message: str) -> None: ...


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool, declared: what it is called, what it takes and gives, how it behaves, and the function that does it.

    `run(state, arguments, report)` may raise `Misuse`; a rejected kernel is no error but an answer with `ok=False`.
    """

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    answer: type[Answer]
    text: Callable[[Any], str]
    run: Callable[[Any, Any, Reporter], Awaitable[Answer]]
    read_only: bool
    idempotent: bool
    destructive: bool = False


def bind(spec: ToolSpec, state: object) -> Tool:
    """The SDK's tool for a declared one, working on `state`."""
    return _BoundTool(
        fn=spec.run,
        name=spec.name,
        title=spec.title,
        description=spec.description,
        parameters=flat_schema(spec.arguments),
        fn_metadata=FuncMetadata(arg_model=ArgModelBase, output_schema=flat_schema(spec.answer)),
        is_async=True,
        context_kwarg=None,
        annotations=ToolAnnotations(
            title=spec.title,
            read_only_hint=spec.read_only,
            destructive_hint=spec.destructive,
            idempotent_hint=spec.idempotent,
            open_world_hint=False,
        ),
        spec=spec,
        state=state,
    )


class _BoundTool(Tool):
    """A tool whose arguments are checked and whose answers are rendered here."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    spec: ToolSpec
    state: Any

    async def run(self, arguments: dict[str, Any], context: Any, convert_result: bool = False) -> CallToolResult:
        from .store import StoreBusy

        try:
            parsed = _parse(self.spec, arguments)
            with anyio.fail_after(ANSWER_SECONDS):
                answer = await self.spec.run(self.state, parsed, _reporter(context))
        except Misuse as error:
            return _error(str(error))
        except StoreBusy as error:
            return _error(f"{error}; nothing was changed, call again")
        except TimeoutError:
            return _error(f"`{self.name}` had no answer within {ANSWER_SECONDS:.0f} s and was given up; nothing is running on its behalf")
        except Exception as error:  # the boundary to the client: what went wrong inside stays in the log
            log.exception("%s raised", self.name)
            return _error(f"internal error in `{self.name}` ({type(error).__name__}); this is a fault of Cake, not of the call")
        body = plain(answer.model_dump(mode="python", exclude_none=True, by_alias=True))
        return CallToolResult(content=[TextContent(type="text", text=self.spec.text(answer))], structured_content=body)


def _parse(spec: ToolSpec, arguments: dict[str, Any]) -> Arguments:
    fields = spec.arguments.model_fields
    wrong = [name for name in arguments if name not in fields]
    if wrong:
        near = get_close_matches(wrong[0], list(fields), n=1, cutoff=0.5)
        offer = f"did you mean `{near[0]}`? " if near else ""
        raise Misuse(f"`{spec.name}` has no argument `{clip(wrong[0], 60)}`; {offer}it takes: {', '.join(fields)}")
    values = {}
    for name, value in arguments.items():
        structured = not _takes_text(fields[name].annotation)
        # Some clients send objects and lists as JSON text. Text arguments are never touched: a kernel may look like JSON.
        values[name] = _decoded(value) if structured and isinstance(value, str) else value
    try:
        return spec.arguments.model_validate({name: value for name, value in values.items() if value is not None})
    except ValidationError as error:
        raise Misuse(_explain(spec, error)) from error


def _takes_text(annotation: Any) -> bool:
    """Whether text is a value of the type itself; text inside a list or mapping does not count."""
    origin = get_origin(annotation)
    if origin is Literal:
        return True
    return annotation is str or (origin in (Union, UnionType) and any(_takes_text(option) for option in get_args(annotation)))


def _decoded(value: str) -> Any:
    try:
        decoded = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return decoded if isinstance(decoded, dict | list | bool | int | float) else value


def _explain(spec: ToolSpec, error: ValidationError) -> str:
    parts = []
    for item in error.errors(include_url=False, include_context=False)[:4]:
        where = ".".join(str(part) for part in item["loc"]) or "arguments"
        found = item["input"]
        shown = "" if item["type"] == "missing" or isinstance(found, dict | list) else f", found {clip(repr(found), 60)}"
        parts.append(f"`{clip(where, 80)}`: {item['msg'][:1].lower()}{item['msg'][1:]}{shown}")
    more = error.error_count() - len(parts)
    return f"`{spec.name}`: " + "; ".join(parts) + (f"; and {more} more" if more > 0 else "")


def _error(message: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=clip(message, _ERROR_CHARACTERS))], is_error=True)


def _reporter(context: Any) -> Reporter:
    last = -1.0

    async def report(progress: float, message: str) -> None:
        nonlocal last
        last = max(progress, last + 1e-3)  # a client counts only values that grow
        await context.report_progress(last, 1.0, clip(message, 200))

    return report


def flat_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The model's JSON schema with definitions inlined, titles and null defaults dropped, and unions with null resolved.

    A field that may be left out is simply not required: several clients cannot read a union with null.
    """
    schema = model.model_json_schema()
    flattened = _flat(schema, schema.pop("$defs", {}))
    flattened.pop("description", None)  # the class's docstring; the tool has its own description
    flattened.setdefault("properties", {})
    return flattened


def _flat(node: dict[str, Any], definitions: dict[str, Any], *, keep_null: bool = False) -> dict[str, Any]:
    if "$ref" in node:
        node = {**definitions[node["$ref"].rpartition("/")[2]], **{key: value for key, value in node.items() if key != "$ref"}}
    out: dict[str, Any] = {}
    for key, value in node.items():
        if key == "properties":
            out[key] = {name: _flat(field, definitions) for name, field in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            out[key] = _flat(value, definitions, keep_null=True)  # the value of an entry may be null where its type says so
        elif key == "anyOf":
            options = [_flat(option, definitions) for option in value if keep_null or option != {"type": "null"}]
            if len(options) == 1:
                out = {**options[0], **out}
            elif all(set(option) == {"type"} for option in options):
                out["type"] = [option["type"] for option in options]
            else:
                out[key] = options
        elif key != "title" and not (key == "default" and value is None):
            out[key] = value
    return out
