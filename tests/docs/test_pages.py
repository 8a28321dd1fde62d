"""Rules for every page: links lead somewhere, examples are valid, and lists have everything that there is."""

import re
import tomllib
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml

from config.load_config import load_file
from config.table.table_schema import GatewayConfig
from providers.failure import VERDICTS
from providers.profiles.load_profiles import parse_profiles
from proxy.listener.cors_and_host_names import EXPOSED
from tests.docs import cli_page, http_page, vendor_pages
from tests.docs.marked_pages import ROOT
from tests.docs.pages import (
    GUIDES,
    WRITTEN,
    anchors,
    blocks,
    links,
    name_of,
    quoted,
    rows,
    section,
    text_of,
    without_blocks,
)
from tests.support.authority import LOCAL, Authority
from tests.support.looped import looped

PRICE = {"price": {"input": 2.5, "output": 10}}
AROUND = {
    "version": 1,
    "vendors": {
        "openai": {"api_key": "${OPENAI_API_KEY}"},
        "azure": {"api_key": "${OPENAI_API_KEY}", "base_url": "https://r.openai.azure.com/openai/v1"},
        "local": {"profile": "vllm", "base_url": "http://10.0.0.1/v1", "allow_private": True},
    },
    "models": {"openai/gpt-4o": PRICE, "openai/gpt-4o-mini": {"price": {"input": 0.15, "output": 0.6}}},
    "routes": {"fast": {"targets": ["openai/gpt-4o"]}, "small": {"targets": ["openai/gpt-4o-mini"]}},
    "teams": {"search": {"keys": [f"sha256:{'0' * 64}"], "models": ["openai/*", "fast"]}},
}
"""The parts that the examples leave out. The keys of an example override these, mapping by mapping."""

OTHER_YAML = {"docs/deploy.md": "rules", "docs/operate.md": "redact"}
"""Pages with an example that is no config file, and its first key."""


def merged(below: object, above: object) -> object:
    if not isinstance(below, dict) or not isinstance(above, dict):
        return above
    return {**below, **above, **{key: merged(below[key], above[key]) for key in below.keys() & above.keys()}}


def examples(path: Path) -> list[str]:
    """The examples of a page that are config files, whole or in part."""
    found = blocks(text_of(path), "yaml")
    return [each for each in found if set(yaml.safe_load(each)) <= {*GatewayConfig.model_fields, "include"}]


@looped("page", GUIDES, ids=name_of)
def test_every_example_of_a_config_file_is_valid_and_warned_of_by_nothing(page: Path, tmp_path: Path) -> None:
    (tmp_path / "search-keys.yaml").write_text(f'- {{hash: "sha256:{"1" * 64}", name: portal}}\n', encoding="utf-8")
    file, days = tmp_path / "table.yaml", timedelta(days=90)
    for name, pem in zip(("tls.crt", "tls.key"), Authority().pair(*LOCAL, until=datetime.now(UTC) + days), strict=True):
        (tmp_path / name).write_bytes(pem)
    keys = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "l"}
    for number, example in enumerate(examples(page)):
        text = yaml.safe_dump(merged(AROUND, yaml.safe_load(example)), sort_keys=False)
        here = text.replace("${OTLP_TOKEN}", "t").replace("${REDIS_URL}", "redis://h").replace("/run/tls/", "")
        file.write_text(here, encoding="utf-8")
        assert load_file(file, keys).warnings == (), f"{number}: {example}"


def test_every_other_example_is_named() -> None:
    others = {
        (name_of(page), next(iter(yaml.safe_load(each))))
        for page in GUIDES
        for each in blocks(text_of(page), "yaml")
        if each not in examples(page) and page.name != "CONTRIBUTING.md"
    }
    assert others == set(OTHER_YAML.items())


def keys_written_twice(text: str) -> list[str]:
    """The keys that a mapping of a YAML text has more than once."""
    found = []
    pending = [document for document in yaml.compose_all(text, yaml.SafeLoader) if document is not None]
    while pending:
        node = pending.pop()
        if isinstance(node, yaml.MappingNode):
            counts = Counter(str(key.value) for key, _ in node.value)
            found += [key for key, count in counts.items() if count > 1]
            pending += [value for _, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            pending += node.value
    return found


@looped("page", GUIDES, ids=name_of)
def test_every_example_has_each_key_once(page: Path) -> None:
    assert [key for text in blocks(text_of(page), "yaml") for key in keys_written_twice(text)] == []
    assert keys_written_twice("a: {b: 1, b: 2}") == ["b"]


@looped("topic", ["Keys of teams", "Limits", "Budgets", "Each end user", "The ledger", "Prices"])
def test_each_topic_of_teams_has_an_example(topic: str) -> None:
    assert "```yaml" in section(text_of(ROOT / "docs" / "configure" / "teams.md"), topic)


@looped("page", WRITTEN, ids=name_of)
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    wrong = []
    for link in links(text_of(page)):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(text_of(target))):
            wrong.append(link)
    assert wrong == []


PYTHON = tuple(
    f"/{path.relative_to(ROOT).as_posix()}"
    for folder in ("config", "providers", "proxy", "tests")
    for path in (ROOT / folder).rglob("*.py")
)


@looped("page", WRITTEN, ids=name_of)
def test_every_module_that_a_page_names_exists(page: Path) -> None:
    text = without_blocks(text_of(page))
    made = set(re.findall(r"^A new file `([^`]+)`:$", text, re.MULTILINE))
    named = set(re.findall(r"`([\w/]+\.py)`", text)) - made
    assert [name for name in sorted(named) if not any(path.endswith(f"/{name}") for path in PYTHON)] == []


@looped("page", WRITTEN, ids=name_of)
def test_every_target_of_make_that_a_page_names_is_there(page: Path) -> None:
    makefile = text_of(ROOT / "Makefile")
    targets = re.findall(r"`make ([a-z-]+)", text_of(page))
    assert [name for name in targets if f"\n{name}:" not in makefile] == []


def test_each_entry_of_the_changelog_is_short_and_below_a_kind_of_change() -> None:
    text = text_of(ROOT / "CHANGELOG.md")
    headings = re.findall(r"^### (\w+)", text, re.MULTILINE)
    assert set(headings) == {"Added", "Changed", "Fixed", "Removed", "Security"}
    assert re.search(r"^## \[\d+\.\d+\.\d+\] - ", text, re.MULTILINE)
    entries = re.findall(r"^- (.*(?:\n  .*)*)", text, re.MULTILINE)
    assert [entry for entry in entries if entry.count("\n") > 1] == []


def test_nothing_is_installed_by_a_name_that_is_not_ours_on_an_index() -> None:
    files = [*WRITTEN, *(ROOT / "proxy").rglob("*.py"), *(ROOT / "config").rglob("*.py")]
    assert [path for path in files if re.search(r"pip install[^\n]*dragoman(\[|$|[ '])", text_of(path))] == []


def test_the_extras_are_the_declared_ones_and_each_is_installed_as_the_page_has_it() -> None:
    project = tomllib.loads(text_of(ROOT / "pyproject.toml"))["project"]
    declared = set(project["optional-dependencies"]) - {"dev", "engine"}
    text = section(text_of(ROOT / "docs" / "configure" / "config-file.md"), "Extras")
    assert {name for row in rows(text) for name in quoted(row[0])} == declared
    makefile = text_of(ROOT / "Makefile")
    locked = set(re.findall(r"--extra (\w+)", makefile))
    assert declared - locked == {"prices"}
    assert "\nextras: $(VENV)/.extras\n" in makefile
    assert "--require-hashes -r requirements-clouds.lock" in makefile


def test_the_endpoints_and_the_commands_are_current() -> None:
    text = text_of(http_page.PAGE)
    assert text == http_page.updated(text), "run `make generate`"
    assert text_of(cli_page.FILE) == cli_page.cli_page(), "run `make generate`"


def test_every_error_code_has_a_row_with_its_status() -> None:
    listed = {
        (int(row[0].rstrip("\\*")), quoted(row[1])[0]) for row in rows(section(text_of(http_page.PAGE), "Errors"))
    }
    made = re.findall(r'ErrorFacts\(\s*(\d+),\s*"\w+",\s*"(\w+)"', text_of(ROOT / "proxy" / "errors.py"), re.DOTALL)
    assert {(int(status), code) for status, code in made} <= listed
    assert {(verdict.status, verdict.code) for verdict in VERDICTS.values()} <= listed


def test_every_header_that_pages_may_read_is_listed() -> None:
    listed = {name for row in rows(section(text_of(http_page.PAGE), "Response headers")) for name in quoted(row[0])}
    exposed = {name for name in EXPOSED.split(", ") if "-ratelimit-" not in name}
    assert exposed - listed == {"request-id"}
    assert "`request-id`" in text_of(http_page.PAGE)


def test_every_profile_has_its_page_and_no_other_page_is_left() -> None:
    there = {path.name: text_of(path) for path in vendor_pages.FOLDER.glob("*.md")}
    overview = there.pop("index.md")
    assert there == vendor_pages.pages(), "run `make generate`"
    assert overview == vendor_pages.index(overview), "run `make generate`"


def test_a_page_of_a_profile_has_its_facts_and_every_field_once() -> None:
    made = vendor_pages.pages()["mistral.md"]
    assert "| address | `https://api.mistral.ai/v1` |" in made
    assert "- **emulated**: " in made
    profiles = parse_profiles("a: {base_url: 'https://{region}.a.example/v1', auth: {style: header, header: x-key}}")
    page = vendor_pages.vendor_page(profiles["a"])
    assert "| `url_params` | `region` |" in page
    assert "| credential | `x-key: KEY` |" in page
    chat = page.partition("## Chat completions")[2].partition("\n## ")[0]
    assert chat.count("`temperature`") == 1
