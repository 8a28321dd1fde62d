"""A file that was loaded as configuration by mistake is not quoted: a message names the error and its position."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from config.problem import ConfigError
from proxy.process.load_table import Source

SECRET = "plumQUARTZviolet"
FILES: Mapping[str, str] = {
    "shadow": f"root:$6$salt${SECRET}:19000:0:99999:7:::\ndaemon:*:19000:0:99999:7:::\n",
    "one account": f"root:$6$salt${SECRET}:19000:0:99999:7:\n",
    "keyed by keys": f"sk-{SECRET}: search\nsk-other: ads\n",
    "JSON": f'{{"{SECRET}": {{"a": 1}}}}',
    "service account": f'{{"type": "service_account", "private_key": "{SECRET}"}}',
    "variables": f"OPENAI_API_KEY={SECRET}\nB=2\n",
    "a list": f"- {SECRET}\n- b\n",
    "a list of maps": f"- {SECRET}: *x\n",
    "PEM": f"-----BEGIN PRIVATE KEY-----\nMII{SECRET}: x\n-----END PRIVATE KEY-----\n",
    "one word": SECRET,
    "a tag": f"{SECRET}: [a, !{SECRET} x]\n",
    "a verbatim tag": f"{SECRET}: !<{SECRET}> x\n",
    "a tag's handle": f"--- !{SECRET}!a x\n",
    "an alias": f"{SECRET}: *{SECRET}\n",
    "an anchor": f"a: &{SECRET} 1\nb: *{SECRET}x\n",
    "a key twice": f"{SECRET}: 1\n{SECRET}: 2\n",
    "no text": f"{SECRET}\x01\n",
    "two documents": f"{SECRET}: 1\n---\n{SECRET}: 2\n",
    "an open list": f"{SECRET}: [a, {SECRET}\n",
    "a tab": f"{SECRET}:\n\t- {SECRET}\n",
    "an escape": f'{SECRET}: "\\{SECRET}"\n',
    "a directive": f"%{SECRET} x\n---\na\n",
    "a deep one": f"{SECRET}: " + "[" * 200 + "]" * 200,
    "a table's key below": f"{SECRET}: {{vendors: {{{SECRET}: 1}}}}\n",
}
"""Ordinary files of a machine, and files that an attacker writes to have them quoted."""

TABLE = "version: 1\nvendors: {{mock: {{}}}}\nmodels: {{mock/echo: {{}}}}\n{more}"


def told(table: Path) -> str:
    """Return all output about a config file: to the operator, to the log and in the response to a reload."""
    with pytest.raises(ConfigError) as caught:
        Source(table, {}).load()
    return str(caught.value)


@pytest.mark.parametrize("kind", FILES)
def test_threat_18_a_file_that_is_no_table_is_not_quoted(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "file"
    file.write_text(FILES[kind], "utf-8")
    said = told(file)
    assert said.startswith(f"{file}:")
    assert SECRET not in said


@pytest.mark.parametrize("kind", FILES)
def test_threat_18_nor_is_one_that_a_table_includes(tmp_path: Path, kind: str) -> None:
    (tmp_path / "file").write_text(FILES[kind], "utf-8")
    table = tmp_path / "table.yaml"
    table.write_text(TABLE.format(more="include: [file]\n"), "utf-8")
    said = told(table)
    assert f"{tmp_path}/file:" in said
    assert SECRET not in said


PLACES = (
    'include: ["${REFERENCE}"]',
    'vendors: {mock: {}, o: {profile: "${REFERENCE}"}}',
    'vendors: {mock: {}, o: {profile: openai_compatible, base_url: "${REFERENCE}"}}',
    'vendors: {mock: {}, o: {profile: openai_compatible, base_url: "https://${REFERENCE}/v1?x"}}',
    'vendors: {mock: {}, azure: {url_params: {resource: "a/${REFERENCE}"}}}',
    'server: {log: "${REFERENCE}"}',
    'server: {port: "${REFERENCE}"}',
    'server: {tls: {cert: "${REFERENCE}", key: "${REFERENCE}"}}',
    'server: {surfaces: {openai: {default_model: "${REFERENCE}"}}}',
    'server: {shared: {redis: "${REFERENCE}"}}',
    'defaults: {ca_file: "${REFERENCE}"}',
    'defaults: {retries: {safety: "${REFERENCE}"}}',
    'routes: {r: {targets: ["${REFERENCE}"]}}',
    'teams: {t: {keys: ["${REFERENCE}"], models: ["*"]}}',
    'teams: {t: {keys: [], models: ["${REFERENCE}"]}}',
)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("written", ["{secret}", "{secret}:$6$x", "a/{secret}"])
def test_threat_18_no_field_repeats_the_file_that_a_reference_names(tmp_path: Path, place: str, written: str) -> None:
    (tmp_path / "secret").write_text(written.format(secret=SECRET), "utf-8")
    table = tmp_path / "table.yaml"
    more = place.replace("REFERENCE", "file:secret")
    text = TABLE.format(more="") if not place.startswith("vendors") else "version: 1\nmodels: {mock/echo: {}}\n"
    table.write_text(f"{text}{more}\n", "utf-8")
    if place.startswith("defaults: {ca_file"):
        # A certificate is read when something uses it.
        table.write_text(table.read_text("utf-8").replace("mock: {}", "mock: {}, openai: {api_key: x}"), "utf-8")
        table.write_text(table.read_text("utf-8").replace("mock/echo: {}", "mock/echo: {}, openai/m: {}"), "utf-8")
    assert SECRET not in told(table)


def test_the_mistakes_of_a_table_are_still_named(tmp_path: Path) -> None:
    table = tmp_path / "table.yaml"
    table.write_text("version: 1\nvendor: {mock: {}}\nmodels: {mock/echo: {context_windw: 1}}\n", "utf-8")
    said = told(table)
    assert "vendor: unknown key; did you mean vendors?" in said
    assert "models.mock/echo.context_windw: unknown key; did you mean context_window?" in said
    (tmp_path / "more.yaml").write_text("server: {port: 1}\n", "utf-8")
    table.write_text(TABLE.format(more="include: [more.yaml, none.yaml]\n"), "utf-8")
    said = told(table)
    assert "more.yaml:1:1 server: an included file may only hold vendors" in said
    assert "cannot read the file" in said
    assert "none.yaml" in said
