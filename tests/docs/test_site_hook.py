"""The links of the site's pages."""

from types import SimpleNamespace

import yaml

from tests.docs import site_hook
from tests.docs.marked_pages import DOCS, ROOT
from tests.docs.pages import text_of
from tests.support.looped import looped


@looped(
    ("text", "page", "shown"),
    [
        ("[a](deploy.md#https)", "operate.md", "[a](deploy.md#https)"),
        ("[a](../../CONTRIBUTING.md#a-vendor)", "reference/profiles.md", "[a](../contributing.md#a-vendor)"),
        ("[a](../README.md#install)", "recipes.md", "[a](index.md)"),
        ("[a](docs/deploy.md)", "contributing.md", "[a](deploy.md)"),
        ("[theory](proxy/limits/README.md)", "architecture.md", "[theory](limits.md)"),
        (
            "[`minimal.yaml`](../../config/examples/minimal.yaml)",
            "configure/config-file.md",
            "`minimal.yaml` (`config/examples/minimal.yaml`)",
        ),
        ("[`deploy/table.yaml`](../deploy/table.yaml)", "deploy.md", "`deploy/table.yaml`"),
        ("[a](https://example.com/x.md) [b](#below)", "deploy.md", "[a](https://example.com/x.md) [b](#below)"),
        ("```\n[a](../README.md)\n```\n", "deploy.md", "```\n[a](../README.md)\n```\n"),
    ],
)
def test_a_link_leads_to_a_page_of_the_site_or_becomes_a_path(text: str, page: str, shown: str) -> None:
    assert site_hook.site_links(text, page) == shown
    assert site_hook.on_page_markdown(text, SimpleNamespace(file=SimpleNamespace(src_uri=page))) == shown


def test_pages_that_stand_elsewhere_are_added_with_their_text() -> None:
    class File:
        @classmethod
        def generated(cls, config: object, name: str, *, content: str) -> tuple[object, str, str]:
            return (config, name, content)

    files: list[object] = [File()]
    added = site_hook.on_files(files, "config")[1:]
    assert [name for _, name, _ in added] == list(site_hook.OUTSIDE)
    assert ("config", "changelog.md", text_of(ROOT / "CHANGELOG.md")) in added


def test_the_navigation_has_every_page() -> None:
    config = yaml.safe_load(text_of(ROOT / "mkdocs.yml"))
    nav = site_hook.on_config(config)["nav"]
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")} | site_hook.OUTSIDE.keys()
    assert sorted(listed(nav)) == sorted(pages)


def listed(nav: list[object]) -> list[str]:
    found: list[str] = []
    for entry in nav:
        if isinstance(entry, str):
            found.append(entry)
        elif isinstance(entry, dict):
            for below in entry.values():
                found += listed(below) if isinstance(below, list) else [below]
    return found
