"""Replaces functions of the gateway, in this process alone.

The source has no switches. A path names the object to replace: `module:name` or `module:Class.name`. A function or
class is replaced in each module that has it by that name, since most modules import names.
"""

import importlib
import sys
from dataclasses import dataclass
from types import ModuleType

OWN = ("proxy", "providers")
"""The packages whose modules get the replacement."""

WHOLE_GATEWAY = "proxy.process.assemble_app"
"""A module that imports all modules that serve requests."""


class Missing(LookupError):
    """A path at which nothing exists. The error names it."""


@dataclass(frozen=True, slots=True)
class Patch:
    """One replacement: the path, the object to put there, and modules that retain the original. `DELETED` instead
    removes the object from its class, so that the parent's is used."""

    path: str
    instead: object
    except_in: frozenset[str] = frozenset()


DELETED = object()


def holder_of(path: str) -> tuple[ModuleType | type, str]:
    """Return the module or class that contains the object of a path, and the object's name there. Raise Missing if it
    does not exist."""
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
    """Replace the object at the path. Raise Missing if it does not exist."""
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
    """Return the gateway's modules that are loaded."""
    return [module for name, module in list(sys.modules.items()) if name.partition(".")[0] in OWN]


def replace_in(module: ModuleType, original: object, instead: object) -> None:
    """Replace an object under all names that a module has for it."""
    for name, value in list(vars(module).items()):
        if value is original:
            setattr(module, name, instead)
