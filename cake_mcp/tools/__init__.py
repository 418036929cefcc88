"""The tools, one file each: every module here that defines `TOOL` is one."""

import importlib
import pkgutil

from ..binding import ToolSpec

_ORDER = ("propose_candidate", "verify", "rank", "compile_and_run", "diagnose", "propose_rule", "get_job", "cancel_job")


def all_tools() -> list[ToolSpec]:
    """Every tool, in the order of the loop."""
    modules = (importlib.import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__))
    found = {module.TOOL.name: module.TOOL for module in modules if hasattr(module, "TOOL")}
    return sorted(found.values(), key=lambda tool: (_ORDER.index(tool.name) if tool.name in _ORDER else len(_ORDER), tool.name))
