"""The hook of `mkdocs.yml`: adds pages that stand outside `docs`, and mends links that leave it.

A page is written once, somewhere in the repository, and the site shows it too. A link to a file that is no page of
the site becomes the path of the file, since the site has no copy of the source.
"""

import posixpath
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]

OUTSIDE: Final[Mapping[str, str]] = {
    "architecture.md": "ARCHITECTURE.md",
    "benchmarks.md": "tests/bench/RESULTS.md",
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "limits.md": "proxy/limits/README.md",
    "plugins.md": "proxy/plugins/README.md",
    "security.md": "SECURITY.md",
    "tests.md": "tests/README.md",
}
"""The pages of the site that are files elsewhere: the path below `docs` to the path in the repository."""

VENDORS: Final = "reference/vendors/index.md"

HOME: Final = {"README.md": "docs/index.md"}
"""Files that the site replaces by a page of its own."""

_LINK: Final = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")
_FENCE: Final = re.compile(r"^(`{3,}|~{3,})[^\n]*\n.*?^\1[ ]*$", re.MULTILINE | re.DOTALL)


def on_config(config: Any) -> Any:  # noqa: ANN401 -- mkdocs' own types, which the tests have no library of
    """Put the page of each profile into the navigation, behind the overview."""
    _each_vendor(config["nav"])
    return config


def _each_vendor(nav: list[Any]) -> None:
    pages = sorted((ROOT / "docs" / "reference" / "vendors").glob("*.md"))
    for entry in nav:
        for below in entry.values() if isinstance(entry, dict) else ():
            if below == [VENDORS]:
                below += [f"reference/vendors/{page.name}" for page in pages if page.name != "index.md"]
            elif isinstance(below, list):
                _each_vendor(below)


def on_files(files: Any, config: Any) -> Any:  # noqa: ANN401 -- as above
    """Add the pages that stand outside `docs`."""
    kind = type(next(iter(files)))
    for page, path in OUTSIDE.items():
        files.append(kind.generated(config, page, content=(ROOT / path).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:  # noqa: ANN401 -- as above
    """Return the page's text with its links as the site needs them."""
    return site_links(markdown, page.file.src_uri)


def site_links(text: str, page: str) -> str:
    """Return the text of a page below `docs` with links that lead to pages of the site, or to no link at all."""
    source = OUTSIDE.get(page, f"docs/{page}")
    parts, end = [], 0
    for fence in _FENCE.finditer(text):
        parts += [_LINK.sub(lambda found: _mended(found, source, page), text[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, _LINK.sub(lambda found: _mended(found, source, page), text[end:])])


def _mended(found: re.Match[str], source: str, page: str) -> str:
    words, link = found[1], found[2]
    path, mark, anchor = link.partition("#")
    if "://" in link or not path or link.startswith("mailto:"):
        return found[0]
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    target = HOME.get(target, target)
    for name, outside in OUTSIDE.items():
        target = f"docs/{name}" if target == outside else target
    if not target.startswith("docs/"):
        return f"{words} (`{target}`)" if target not in words else words
    shown = posixpath.relpath(target, posixpath.dirname(f"docs/{page}"))
    kept = mark + anchor if target != "docs/index.md" else ""
    return f"[{words}]({shown}{kept})"
