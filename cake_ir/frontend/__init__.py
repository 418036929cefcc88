"""From text to programs: `parse` reads a file into templates, `specialise` folds tunables into a typed program."""

from cake_ir.frontend.module import parse
from cake_ir.frontend.specialise import Specialised, specialise
from cake_ir.frontend.template import Module, Template

__all__ = ["Module", "Specialised", "Template", "parse", "specialise"]
