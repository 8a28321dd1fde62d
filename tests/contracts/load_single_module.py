"""Loads one file of types from a distribution whose package would import much more. Only for a process of its own:
the file's imports from the rest of its package are replaced."""

import sys
from collections.abc import Mapping
from importlib import metadata
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType


def load_single_module(
    distribution: str, path: str, stand_ins: Mapping[str, Mapping[str, object]] | None = None
) -> ModuleType:
    """Load the file at the end of `path` and return its module. `stand_ins` are modules by name, with the names that
    the file imports from them.

    Raises PackageNotFoundError if the distribution is not installed.
    """
    for name, members in (stand_ins or {}).items():
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__dict__.update(members)
    (found,) = [file for file in metadata.files(distribution) or [] if str(file).endswith(path)]
    name = f"alone_{distribution.replace('-', '_')}"
    spec = spec_from_file_location(name, str(found.locate()))
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]
