"""The endpoints in `docs/reference/http.md`: `python -m tests.docs.http_page`."""

from collections.abc import Iterator
from typing import Final

from proxy.surfaces.registry import SURFACES
from proxy.surfaces.surface import Endpoint
from tests.docs.marked_pages import DOCS, replaced

PAGE: Final = DOCS / "reference" / "http.md"
BEGIN: Final = "<!-- endpoints: written by `python -m tests.docs.http_page` -->"
END: Final = "<!-- end of endpoints -->"


def endpoints() -> dict[str, list[Endpoint]]:
    """Return the endpoints of each API by its name."""
    found: dict[str, list[Endpoint]] = {}
    for surface in SURFACES:
        found.setdefault(surface.name, []).extend(surface.endpoints)
    return found


def tables() -> str:
    """Return the endpoints of each API as Markdown: method and path, with its other paths."""
    return "\n".join(line for name, every in endpoints().items() for line in _table(name, every))


def updated(page: str) -> str:
    """Return the page with the current endpoints between its marks. Raises ValueError if a mark is missing."""
    return replaced(page, BEGIN, tables(), END)


def _table(name: str, every: list[Endpoint]) -> Iterator[str]:
    yield f"### `{name}`\n\n| method | path | also at |\n|---|---|---|"
    alike: dict[tuple[str, str], list[str]] = {}
    for endpoint in every:
        tail = "/".join(part for part in endpoint.path.split("/") if part not in _BASES and part)
        alike.setdefault((endpoint.method, tail), []).append(endpoint.path)
    for (method, _), paths in alike.items():
        first, *others = sorted(paths, key=_rank)
        yield f"| {method} | `{first}` | {', '.join(f'`{path}`' for path in others)} |"
    yield ""


def _rank(path: str) -> tuple[bool, bool, int]:
    """Return the order of the paths of an operation: below `/v1` first, with the model in the path late."""
    return (not path.startswith("/v1/"), "{model}" in path, path.count("/"))


_BASES: Final = ("v1", "v2", "openai", "anthropic", "engines", "deployments", "{model}", "inference")
"""Parts of a path that do not change the operation, but may name the model."""

if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
