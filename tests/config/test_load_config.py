"""Complete loads: all problems are reported at once, no secret is printed, and the only exception is ConfigError."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.load_config import EMBEDDED_CONFIG, examine_embedded, examine_file, fingerprint, load_file, load_text
from config.problem import ConfigError
from tests.config.tables import complaints, load, problems
from tests.support.looped import looped

ROOT = Path(__file__).parent.parent.parent / "config"
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))

PLANTED = """\
version: 1
server:
  prot: 8080
vendors:
  openai: {api_key: "${OPENAI_API_KEY}"}
  openai: {}
models:
  openai/gpt-4o:
    context_window: "lots"
routes:
  fast: [openai/gpt-4o]
  slow: openai/gpt-4
"""


def test_five_planted_mistakes_and_more_are_reported_at_once_in_order() -> None:
    assert complaints(PLANTED) == [
        "3:3 server.prot: unknown key; did you mean port?",
        "5:21 vendors.openai.api_key: the environment variable OPENAI_API_KEY is not set",
        "6:3 vendors.openai: key written twice; first at t.yaml:5:3",
        "9:21 models.openai/gpt-4o.context_window: must be a number of tokens, such as 128000, 128k or 1m "
        "(k is 1,000, m is 1,000,000)",
        "11:9 routes.fast: expected a name or a mapping, found a list; write fast: {targets: [openai/gpt-4o]}",
        "12:9 routes.slow: no model or route named openai/gpt-4; did you mean openai/gpt-4o?",
    ]


def test_a_mistake_in_a_list_of_settings_hides_no_other() -> None:
    text = """\
        version: 1
        vendors: {mock: {}}
        routes: {r: {targets: [gone]}}
        teams:
          t: {keys: ["sha256:zz"], models: [lost], budget: [{usd: 3, per: fortnight}, {usd: 3, tokens: 4, per: day}]}
          u: {keys: ["sha256:yy"], models: [missed], budget: {usd: 3}}
        """
    told = [each.split(" ")[1].rstrip(":") for each in complaints(text)]
    assert told == [
        "routes.r.targets.0",
        "teams.t.keys.0",
        "teams.t.models.0",
        "teams.t.budget.0.per",
        "teams.t.budget.1",
        "teams.u.keys.0",
        "teams.u.models.0",
        "teams.u.budget.per",
    ]


def test_a_mistake_does_not_echo_in_what_depends_on_it() -> None:
    text = """\
        version: 1
        vendors: {v: 5, w: {base_url: "${U}"}}
        models: {v/m: [], w/m: {deployments: {a: 1}}}
        routes: {r: {targets: []}, s: {targets: [r, v/m, w/m/a, v/m/default]}}
        teams: {t: {keys: ["sha256:zz"], models: [r, s, v/m, w/m/a, w/*]}}
        """
    told = [each.split(" ")[1].rstrip(":") for each in complaints(text)]
    assert told == [
        "vendors.v",
        "vendors.w.base_url",
        "models.v/m",
        "models.w/m.deployments.a",
        "routes.r.targets",
        "teams.t.keys.0",
    ]


@looped(
    ("text", "expected"),
    [
        ("", "1:1 the configuration is empty; it needs `version: 1`, vendors and models"),
        ("# nothing\n", "1:1 the configuration is empty"),
        ("---\n~\n", "1:1 the configuration is empty"),
        ("- a\n", "1:1 expected a mapping with `version: 1`"),
        ("text\n", "1:1 expected a mapping with `version: 1`"),
        ("a: [\n", "2:1 not YAML"),
    ],
)
def test_a_file_that_is_no_table_is_reported(text: str, expected: str) -> None:
    (told,) = complaints(text)
    assert told.startswith(expected)


def test_a_file_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_bytes(b"version: \xff")
    for name, reason in {"t.yaml": "not UTF-8: bad byte at offset 9", "none.yaml": "No such file or directory"}.items():
        with pytest.raises(ConfigError) as caught:
            load_file(tmp_path / name, {})
        assert str(caught.value) == f"{tmp_path / name}:1:1 cannot read the file: {reason}"


def test_a_loaded_table_knows_its_files_and_notices_a_change(tmp_path: Path) -> None:
    table, key = tmp_path / "t.yaml", tmp_path / "key"
    key.write_text("one\n")
    table.write_text('version: 1\nvendors: {v: {api_key: "${file:key}"}}\nmodels: {v/m: {}}\n')
    loaded = load_file(table, {})
    assert loaded.files == (table, key)
    assert loaded.warnings == ()
    assert fingerprint(loaded.sources) == loaded.sources.hashes
    key.write_text("two\n")
    assert fingerprint(loaded.sources) != loaded.sources.hashes
    assert load_file(table, {}).digest != loaded.digest


def test_the_swap_of_a_mounted_folder_is_a_change(tmp_path: Path) -> None:
    # A Kubernetes volume: the file is a symbolic link through `..data`, and `..data` itself is replaced.
    for version in ("1", "2"):
        (tmp_path / f"..{version}").mkdir()
        (tmp_path / f"..{version}" / "t.yaml").write_text(f"version: 1 # {version}\n")
    (tmp_path / "..data").symlink_to("..1")
    (tmp_path / "t.yaml").symlink_to("..data/t.yaml")
    loaded = load_file(tmp_path / "t.yaml", {})
    assert fingerprint(loaded.sources) == loaded.sources.hashes
    (tmp_path / "..new").symlink_to("..2")
    (tmp_path / "..new").rename(tmp_path / "..data")
    assert fingerprint(loaded.sources) != loaded.sources.hashes


def test_copies_load_the_very_same_table_when_its_files_are_gone(tmp_path: Path) -> None:
    main, part, secret = tmp_path / "t.yaml", tmp_path / "part.yaml", tmp_path / "secret"
    main.write_text("version: 1\ninclude: ['p*.yaml']\nvendors: {openai: {api_key: '${file:secret}'}}\n")
    part.write_text("models: {openai/gpt-4o: {}}\n")
    secret.write_text("sk-1\n")
    loaded = load_file(main, {})
    for path in (main, part):
        path.unlink()
    secret.write_text("sk-2\n")
    again = examine_file(main, {}, loaded.copies).sound()
    assert (again.config, again.digest, again.files) == (loaded.config, loaded.digest, loaded.files)
    assert again.copies == loaded.copies


def test_the_digest_is_that_of_the_text() -> None:
    one = load("version: 1\n")
    assert one.digest == load("version: 1\n").digest
    assert one.digest != load("version: 1 # other\n").digest
    assert len(one.digest) == 64


def test_a_place_is_found_for_what_is_written_and_for_what_is_not() -> None:
    locate = load("version: 1\nvendors:\n  x: {profile: p}\n  y: {}\n").locate
    assert str(locate(("vendors", "x", "profile"))) == "t.yaml:3:16"
    assert str(locate(("vendors", "y", "profile"))) == "t.yaml:4:3"
    assert str(locate(("server", "host"))) == "t.yaml:1:1"


def test_the_embedded_table_is_the_mock_vendor_on_loopback() -> None:
    loaded = examine_embedded({}).sound()
    assert loaded.warnings == ()
    assert list(loaded.config.vendors) == ["mock"]
    assert list(loaded.config.models) == ["mock/echo", "mock/*"]
    assert loaded.config.teams == {}
    assert loaded.config.server.host == "127.0.0.1"
    assert loaded.locate(("models", "mock/*")).file == EMBEDDED_CONFIG


def test_there_are_examples() -> None:
    assert [path.stem for path in EXAMPLES] == ["clouds", "company", "embeddings", "minimal", "routes", "self-hosted"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_loads_without_a_warning(path: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("from-a-file\n")
    text = path.read_text().replace("/run/secrets/anthropic", str(secret))
    env = {f"{name}_API_KEY": "x" for name in ("OPENAI", "ANTHROPIC", "FIREWORKS", "COHERE", "VOYAGE")}
    env |= {"AZURE_KEY": "y", "PAIS_CLIENT_SECRET": "z"}
    assert load_text(text, str(path), env).warnings == ()
    assert text.startswith("# yaml-language-server: $schema=../schema.json\n")


CANARY = "CANARY7f3a"
SECRETS = {f"S{i}": f"{CANARY}{i}" for i in range(12)}

LEAKY = """\
version: 1
server: {host: "${S0}", port: "${S0}", log: "${S0}", max_body: "${S0}", drain_timeout: "${S0}", admin: {token: "${S1}"}}
defaults: {timeouts: {idle: "${S0} x"}, headers: {X-A: "${S2}\\n"}, api_version: "${S2}", context_window: "${S3}"}
vendors:
  a: {api_key: "${S3} ", base_url: "https://u:${S4}@h", profile: "${S5} x", url_params: {r: "${S4}/"}}
  b: {base_url: "${S6}", allow_private: "${S6}", headers: {X-A: "${S2}"}}
  c: {base_url: "http://${S6}.example", api_key: CANARY7f3aliteral}
  d: {api_key: [CANARY7f3aliteral], unknown: "${S7}"}
models:
  a/m: {policy: "${S7}", upstream_model: "${S7}\\t", deployments: {x: {weight: "${S8}"}}}
  a/n: {upstream_model: "${S8}"}
routes: {r: "${S9}", s: {targets: ["${S9}", {target: "${S9} x", weight: "${S9}"}]}}
teams:
  t: {keys: ["${S10}", "CANARY7f3a-plain"], models: ["${S11}", "${S11}/*", "${S11} x"], routes: {q: "${S10}"}}
include: ["${S1}.yaml", "${file:${S0}}"]
"""


def test_no_secret_is_in_any_message() -> None:
    with pytest.raises(ConfigError) as caught:
        load_text(LEAKY, "t.yaml", SECRETS)
    assert len(caught.value.problems) > 20
    assert CANARY not in str(caught.value).replace(f"{CANARY}1.yaml", "")
    assert CANARY not in repr(caught.value.problems).replace(f"{CANARY}1.yaml", "")


def test_no_secret_is_in_what_a_load_returns() -> None:
    text = """\
        version: 1
        server: {admin: {token: "${S1}"}}
        vendors: {a: {api_key: "${S2}", headers: {X-A: "${S3}", X-B: CANARY7f3aliteral}}}
        models: {a/m: {api_key: CANARY7f3aliteral}}
        """
    loaded = load(text, SECRETS)
    shown = [repr(loaded), str(loaded.warnings), loaded.config.model_dump_json(), str(loaded.config), loaded.digest]
    assert not any(CANARY in each for each in shown)


FRAGMENTS = [
    *LEAKY.split("\n"),
    *PLANTED.split("\n"),
    "  ",
    "- ",
    ": ",
    "{",
    "}",
    "[",
    "]",
    "&a",
    "*a",
    "<<: *a",
    "!!int",
    "\t",
    "'",
]


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=12), st.sampled_from(["\n", " ", ""]))
def test_any_table_loads_or_raises_what_is_wrong_with_it(parts: list[str], glue: str) -> None:
    found = problems("version: 1\n" + glue.join(parts), SECRETS)
    assert all(problem.line >= 1 and problem.column >= 1 and problem.message for problem in found)
    assert not any(CANARY in problem.message and f"{CANARY}1.yaml" not in problem.message for problem in found)


@given(st.text())
def test_any_text_raises_nothing_but_a_config_error(text: str) -> None:
    with pytest.raises(ConfigError):
        load_text(text + "\n@", "t.yaml", {})


def test_what_could_be_saved_of_a_table_can_be_looked_at_further(tmp_path: Path) -> None:
    path = tmp_path / "table.yaml"
    path.write_text("version: 1\nroutes: {fast: [nowhere/x]}\n", encoding="utf-8")
    dangling = examine_file(path, {})
    assert dangling.table is not None
    assert [problem.path for problem in dangling.problems] == ["routes.fast", "routes.fast.0"]
    path.write_text("- version: 1\n", encoding="utf-8")
    assert examine_file(path, {}).table is None
