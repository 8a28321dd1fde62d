"""The test folder of each dialect, `tests/providers/dialects/NAME`: its fixtures, and its declarations for the suites
that run over every dialect."""

from importlib import import_module
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).resolve().parents[1] / "providers" / "dialects"
PACKAGE: Final = "tests.providers.dialects"
NAMES: Final = sorted(path.parent.name for path in FOLDER.glob("*/fixtures"))
"""The names of the folders."""


def fixture_path(name: str) -> Path:
    """Return the path of a fixture, or of a folder of fixtures. The name is `dialect/rest`, such as
    `cohere/errors/error_401.json`."""
    dialect, _, rest = name.partition("/")
    return FOLDER / dialect / "fixtures" / rest


def fixture_name(path: Path) -> str:
    """Return the name of a fixture, the inverse of `fixture_path`."""
    dialect, _, rest = path.relative_to(FOLDER).as_posix().partition("/fixtures/")
    return f"{dialect}/{rest}"


def declared(pattern: str, variable: str) -> dict[str, Any]:  # Any: the caller's annotation gives the type
    """Merge the mappings named `variable` from the folders' modules whose file names match `pattern`. No key occurs
    twice."""
    found: dict[str, Any] = {}
    for path in sorted(FOLDER.glob(f"*/{pattern}")):
        mapping = getattr(import_module(f"{PACKAGE}.{path.parent.name}.{path.stem}"), variable, {})
        assert not found.keys() & mapping.keys(), path
        found |= mapping
    return found
