"""Puts other functions in the place of the gateway's own, in this process alone.

The source has no switches: what is replaced is named by a path, `module:name` or `module:Class.name`. A function or
class is replaced wherever a module has it by that name, since most modules import names.
"""

import importlib
import sys
from dataclasses import dataclass
from types import ModuleType

OWN = ("proxy", "providers")
"""The packages whose modules get the replacement."""

WHOLE_GATEWAY = "proxy.process.assemble_app"
"""A module that loads all that serves."""


class Missing(LookupError):
    """A path at which nothing is; names it."""


@dataclass(frozen=True, slots=True)
class Patch:
    """One replacement: the path, what stands there instead, and modules that keep the original. `DELETED` instead
    removes it from its class, so that the parent's is used."""

    path: str
    instead: object
    except_in: frozenset[str] = frozenset()


DELETED = object()


def holder_of(path: str) -> tuple[ModuleType | type, str]:
    """Return the module or class that has what a path names, and its name there. Raises Missing if there is none."""
    module_name, _, names = path.partition(":")
    *outer, name = names.split(".")
    try:
        holder: ModuleType | type = importlib.import_module(module_name)
        for each in outer:
            holder = getattr(holder, each)
    except (ImportError, AttributeError):
        raise Missing(path) from None
    if name not in vars(holder):
        raise Missing(path)
    return holder, name


def apply(patch: Patch) -> None:
    """Replace what the path names. Raises Missing if nothing is there."""
    importlib.import_module(WHOLE_GATEWAY)
    holder, name = holder_of(patch.path)
    original = vars(holder)[name]
    if patch.instead is DELETED:
        delattr(holder, name)
        return
    setattr(holder, name, patch.instead)
    if isinstance(holder, ModuleType):
        for module in own_modules():
            if module.__name__ not in patch.except_in:
                replace_in(module, original, patch.instead)


def own_modules() -> list[ModuleType]:
    """The gateway's modules that are loaded."""
    return [module for name, module in list(sys.modules.items()) if name.partition(".")[0] in OWN]


def replace_in(module: ModuleType, original: object, instead: object) -> None:
    """Replace an object under all names that a module has for it."""
    for name, value in list(vars(module).items()):
        if value is original:
            setattr(module, name, instead)
