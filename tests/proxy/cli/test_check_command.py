"""Every problem is one line with its path, in each output format, and no line contains a secret."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from config.problem import Problem
from providers.profiles.load_profiles import load_profiles
from proxy.cli.check_command import FORMS, Finding, check, github_lines
from proxy.process.load_table import Source
from proxy.routing.build_target import GENERIC
from proxy.routing.route_settings import CACHED_REQUESTS
from tests.proxy.cli.conftest import CANARY, TABLE
from tests.support.looped import looped
from tests.support.redis import real_redis

pytestmark = pytest.mark.smoke


Writer = Callable[[str], Source]
Output = pytest.CaptureFixture[str]

SOUND = """\
version: 1
vendors:
  mock: {}
models:
  mock/echo: {}
"""

BAD = f"""\
version: 1
server:
  prot: 80
vendors:
  openai: {{api_key: {CANARY}}}
models:
  opnai/gpt-4o: {{}}
routes:
  fast: openai/gpt-5
"""


def test_a_redis_that_may_throw_limits_away_is_warned_of_there(
    source: Writer, capsys: Output, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.shared_state.redis_eviction.OPERATOR_TIMEOUT", 60.0)  # a busy machine
    with real_redis(tmp_path, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru") as redis:
        shared = f"server: {{shared: {{redis: '{redis.url}'}}}}\n"
        assert check(source(SOUND + shared), "warning", FORMS["text"]) == 0
        assert "server.shared.redis: warning: Redis evicts keys" in capsys.readouterr().out
        assert check(source(SOUND + shared), "error", FORMS["text"]) == 1
    assert check(source(SOUND + shared), "error", FORMS["text"]) == 0


def test_the_entries_of_a_table_are_counted_in_one_line(source: Writer, capsys: Output) -> None:
    assert check(source(SOUND), "warning", FORMS["text"]) == 0
    assert capsys.readouterr().out == "ok: 1 vendor, 1 model, 1 deployment, 0 routes, 0 teams\n"
    assert check(source(TABLE), "warning", FORMS["text"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "ok: 6 vendors, 6 models, 7 deployments, 3 routes, 2 teams"


def test_the_embedded_table_is_sound(capsys: Output) -> None:
    assert check(Source(None, {}), "error", FORMS["text"]) == 0
    assert capsys.readouterr().out.startswith("ok: ")


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("defaults: {on_unsupported: ignore}", "6:28 defaults.on_unsupported: must be error or drop"),
        (
            "defaults: {context_length_exceeded_behavior: no}",
            "6:46 defaults.context_length_exceeded_behavior: must be truncate or error",
        ),
    ],
)
def test_what_a_setting_cannot_be_is_told_at_its_place(line: str, place: str, source: Writer, capsys: Output) -> None:
    table = source(SOUND + line)
    assert check(table, "warning", FORMS["text"]) == 1
    assert capsys.readouterr().out.startswith(f"{table.path}:{place}")


NEEDY = """\
version: 1
vendors:
  v: {profile: openai_compatible, base_url: "https://v.example/v1", credentials: CREDENTIALS}
models: {v/m: {}}
"""


@pytest.mark.parametrize(
    ("credentials", "said", "status", "strict"),
    [
        ("{google: {file: sa.json}}", "cannot read the file with the credentials of Google", 1, 1),
        ("{aws: {service: s, region: r, profile: p}}", "there is no profile of that name in ", 1, 1),
        ("{entra: {scope: s}}", "warning: no credentials of Azure in the environment (AZURE_CLIENT_SECRET", 0, 1),
    ],
)
def test_credentials_that_are_not_there_are_told_where_they_are_written(
    credentials: str, said: str, status: int, strict: int, source: Writer, capsys: Output
) -> None:
    table = source(NEEDY.replace("CREDENTIALS", credentials))
    assert check(table, "warning", FORMS["text"]) == status
    assert capsys.readouterr().out.startswith(f"{table.path}:3:82 vendors.v.credentials: {said}")
    assert check(table, "error", FORMS["text"]) == strict


def test_what_to_install_of_a_library_is_said(source: Writer, capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "azure.identity", None)
    table = source(NEEDY.replace("CREDENTIALS", "{entra: {scope: s}}"))
    assert check(table, "warning", FORMS["text"]) == 1
    assert capsys.readouterr().out == (
        f"{table.path}:3:82 vendors.v.credentials: credentials of the kind entra need an extra: "
        "make extras, or pip install '.[azure]' in Dragoman's source\n"
    )


def test_every_problem_is_a_line_with_its_place_in_order(source: Writer, capsys: Output) -> None:
    table = source(BAD)
    assert check(table, "warning", FORMS["text"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.removeprefix(f"{table.path}:").partition(": ")[0] for line in lines] == [
        "3:3 server.prot",
        "5:21 vendors.openai.api_key",
        "7:3 models.opnai/gpt-4o",
        "9:9 routes.fast",
    ]
    assert "did you mean port?" in lines[0]
    assert ["warning: " in line for line in lines] == [False, True, False, False]


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        # Each of these warnings would only repeat an error.
        ("vendors: {mock: {}}\nmodels: {mock/echo: {policy: wieghted, deployments: {a: {weight: 2}}}}", ["policy"]),
        ("vendors: {mock: {}}\nmodles: {mock/echo: {}}", ["modles"]),
        (
            "vendors: {anthropic: {api_key: x}}\nmodels: {anthropic/x: {max_output_tokens: lots}}",
            ["api_key", "max_output_tokens"],
        ),
        ('defaults: {api_key: "${K:-x}"}\nvendors: {openai: {api_key: "${L}"}, mock: {}}', ["api_key", "api_key"]),
        # These warnings are independent of the errors.
        (
            "vendors: {anthropic: {api_key: x}}\nmodels: {anthropic/x: {}}\nroutes: {r: anthropic/y}",
            ["api_key", "max_output_tokens", "r"],
        ),
        ("vendors: {mock: {profile: moc}}\nmodels: {mock/x: {}}\nserver: {admin: {token: t}}", ["profile", "token"]),
    ],
)
def test_warnings_do_not_echo_the_errors(table: str, expected: list[str], source: Writer, capsys: Output) -> None:
    assert check(source(f"version: 1\n{table}\n"), "error", FORMS["json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [each["path"].rpartition(".")[2] for each in found] == expected


def test_what_only_the_vendors_rows_can_tell_has_its_place_too(source: Writer, capsys: Output) -> None:
    table = source(SOUND.replace("mock: {}", "mock: {profile: moc}"))
    assert check(table, "warning", FORMS["text"]) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(f"{table.path}:3:")
    assert "did you mean mock?" in line


def test_a_warning_is_a_line_and_only_strictly_a_failure(source: Writer, capsys: Output) -> None:
    table = source(TABLE)
    assert check(table, "warning", FORMS["text"]) == 0
    assert capsys.readouterr().out.startswith(f"{table.path}:3:21 vendors.openai.api_key: warning: ")
    assert check(source(TABLE), "error", FORMS["text"]) == 1
    output = capsys.readouterr().out
    assert "warning: " not in output
    assert "ok:" not in output


def test_a_file_that_is_not_there_is_a_problem_of_its_first_line(capsys: Output, source: Writer) -> None:
    missing = source(SOUND)
    assert missing.path is not None
    missing.path.unlink()
    assert check(missing, "warning", FORMS["text"]) == 1
    assert capsys.readouterr().out == f"{missing.path}:1:1 cannot read the file: No such file or directory\n"


def test_json_is_a_list_of_objects(source: Writer, capsys: Output) -> None:
    table = source(BAD)
    assert check(table, "warning", FORMS["json"]) == 1
    first, *rest = json.loads(capsys.readouterr().out)
    assert len(rest) == 3
    message = first.pop("message")
    place = {"file": str(table.path), "line": 3, "column": 3, "path": "server.prot"}
    assert first == {"severity": "error", **place}
    assert message.startswith("unknown key")


def test_json_of_a_sound_table_is_an_empty_list(source: Writer, capsys: Output) -> None:
    assert check(source(SOUND), "warning", FORMS["json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_github_shows_each_problem_beside_its_line(source: Writer, capsys: Output) -> None:
    table = source(BAD)
    assert check(table, "warning", FORMS["github"]) == 1
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith(f"::error file={table.path},line=3,col=3::server.prot: unknown key")


def test_github_commands_escape_what_would_end_them() -> None:
    finding = Finding(Problem("a,b:c%.yaml", 1, 2, "models.x", "100% wrong"), "warning")
    assert list(github_lines([finding], "fine")) == [
        "::warning file=a%2Cb%3Ac%25.yaml,line=1,col=2::models.x: 100%25 wrong",
        "ok: fine",
    ]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("table", [TABLE, BAD, TABLE.replace("headers", "haeders")])
def test_no_form_shows_a_secret(source: Writer, capsys: Output, form: str, table: str) -> None:
    check(source(table), "error", FORMS[form])
    assert CANARY not in "".join(capsys.readouterr())


def test_five_planted_mistakes_are_five_lines_at_their_places(source: Writer, capsys: Output) -> None:
    table = source("""\
        version: 1
        server: {prot: 8080}
        vendors:
          openai: {api_key: "${OPENAI_API_KEY}"}
        models:
          openai/gpt-4o: {context_window: many}
          opnai/gpt-4o-mini: {}
        routes:
          fast: {targets: [openai/gpt-5]}
        """)
    assert check(table, "warning", FORMS["text"]) == 1
    assert [line.removeprefix(f"{table.path}:") for line in capsys.readouterr().out.splitlines()] == [
        "2:10 server.prot: unknown key; did you mean port?",
        "4:21 vendors.openai.api_key: the environment variable OPENAI_API_KEY is not set",
        "6:35 models.openai/gpt-4o.context_window: must be a number of tokens, such as 128000, 128k or 1m "
        "(k is 1,000, m is 1,000,000)",
        "7:3 models.opnai/gpt-4o-mini: no vendor named opnai; did you mean openai/gpt-4o-mini?",
        "9:20 routes.fast.targets.0: no model or route named openai/gpt-5; did you mean openai/gpt-4o?",
    ]


def test_what_only_the_vendors_rows_can_tell_is_told_beside_other_mistakes(source: Writer, capsys: Output) -> None:
    table = source("""\
        version: 1
        vendors:
          near: {profile: opnai, api_key: "${KEY:-}"}
          far: {profile: fireworks}
        models:
          far/llama: {}
        routes:
          fast: {targets: [far/lama]}
        """)
    assert check(table, "warning", FORMS["text"]) == 1
    assert [line.removeprefix(f"{table.path}:") for line in capsys.readouterr().out.splitlines()] == [
        "3:19 vendors.near.profile: no profile is called 'opnai'; did you mean openai or pais? For a server that "
        "speaks OpenAI's API write profile: openai_compatible",
        "4:8 vendors.far: the profile 'fireworks' needs an api_key",
        "8:20 routes.fast.targets.0: no model or route named far/lama; did you mean far/llama?",
    ]


def test_a_vendor_of_a_name_of_its_own_is_told_the_profile_to_write(source: Writer, capsys: Output) -> None:
    table = source("""\
        version: 1
        vendors:
          zz-9: {base_url: "https://llm.example.com/v1", api_key: "${KEY:-}"}
        models:
          zz-9/m:
        """)
    assert check(table, "warning", FORMS["text"]) == 1
    assert capsys.readouterr().out == (
        f"{table.path}:3:3 vendors.zz-9.profile: no profile is called 'zz-9'; for a server that speaks OpenAI's API "
        "write profile: openai_compatible\n"
    )
    assert GENERIC in load_profiles()


@pytest.mark.parametrize("form", FORMS)
def test_a_secret_that_became_part_of_a_key_is_in_no_form(form: str, source: Writer, capsys: Output) -> None:
    text = SOUND + f"server: {{admin: {{token:{CANARY}}}}}\n"
    assert check(source(text.replace("mock: {}", f"mock: {{api_key:{CANARY}}}")), "warning", FORMS[form]) == 1
    told = capsys.readouterr().out
    assert told.count("a space is missing after the colon of") == 2
    assert CANARY not in told


CACHED = """\
version: 1
vendors: {mock: {}}
models:
  mock/a: {cache: {ttl: 1h, scope: table}}
  mock/b: {cache: {where: off}}
"""


def test_what_each_cache_does_is_said_where_it_is_written_and_is_no_problem(source: Writer, capsys: Output) -> None:
    table = source(CACHED)
    assert check(table, "error", FORMS["text"]) == 0
    first, second, last = capsys.readouterr().out.splitlines()
    does = f"responses are cached 3600 s for all teams together, in memory, for {CACHED_REQUESTS}"
    assert first == f"{table.path}:4:19 models.mock/a.cache: note: {does}"
    assert second == f"{table.path}:5:19 models.mock/b.cache: note: no responses are cached"
    assert last.startswith("ok: ")
    check(table, "error", FORMS["json"])
    assert [each["severity"] for each in json.loads(capsys.readouterr().out)] == ["note", "note"]
    check(table, "error", FORMS["github"])
    assert capsys.readouterr().out.startswith("::notice file=")


@looped(
    ("file", "gateway"),
    [
        *((file, "litellm") for file in ("overview.yaml", "credential_list.yaml", "mutual_fallbacks.yaml")),
        *((file, "bifrost") for file in ("quick_start.json", "virtual_keys.json", "weighted_keys.json")),
        *((file, "portkey") for file in ("fallback.json", "nested.json", "complete.json")),
    ],
)
def test_a_configuration_of_another_gateway_names_its_import(
    file: str, gateway: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path("tests/fixtures/imports") / gateway / file
    assert check(Source(path, {}), "warning", FORMS["text"]) == 1
    assert capsys.readouterr().out.count(f"`dragoman import {gateway} FILE` converts it") == 1
