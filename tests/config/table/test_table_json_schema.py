"""The JSON Schema of the config file: committed, valid, and in agreement with the models."""

import json
from pathlib import Path

import yaml
from jsonschema import Draft202012Validator

from config.table.table_json_schema import json_schema, schema_text, with_profiles
from tests.config.tables import complaints
from tests.support.looped import looped

ROOT = Path(__file__).parents[3] / "config"
TABLES = [ROOT / "demo_table.yaml", *sorted((ROOT / "examples").glob("*.yaml"))]
VALIDATOR = Draft202012Validator(json.loads((ROOT / "schema.json").read_text(encoding="utf-8")))
"""A validator of the committed schema, which editors use."""


class EditorLoader(yaml.SafeLoader):
    """A YAML loader that reads as editors do: a date is text."""


EditorLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in rules if not tag.endswith(":timestamp")]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def passes(text: str) -> bool:
    return bool(VALIDATOR.is_valid(yaml.load(text, EditorLoader)))  # noqa: S506 -- a safe loader


def profile_passes(profile: object) -> bool:
    schema = with_profiles(json_schema(), ["vllm", "openai"])
    return bool(Draft202012Validator(schema).is_valid({"version": 1, "vendors": {"v": {"profile": profile}}}))


@looped("profile", ["openai", "vllm", "${PROFILE:-openai}", None])
def test_an_editor_takes_the_profiles_there_are_and_references(profile: object) -> None:
    assert profile_passes(profile)


@looped("profile", ["opnai", "", 1])
def test_an_editor_refuses_a_profile_that_there_is_not(profile: object) -> None:
    assert not profile_passes(profile)


def test_the_profiles_are_listed_in_order_for_editors_to_complete() -> None:
    vendor = json.loads(schema_text(["vllm", "openai"]))["$defs"]["Vendor"]
    assert vendor["properties"]["profile"]["anyOf"][0] == {"enum": ["openai", "vllm"]}


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(json_schema())


@looped("path", TABLES, ids=lambda path: path.stem)
def test_every_table_we_ship_passes(path: Path) -> None:
    assert passes(path.read_text(encoding="utf-8"))


HEAD = "version: 1\nvendors: {v: {}}\nmodels: {v/m: {}}\n"
KEY = "sha256:" + "a" * 64


@looped(
    "line",
    [
        "server: {port: 80, max_body: 32MiB, drain_timeout: 10m, drain_grace: 0, watch: false, log: text}",
        "server: {limits: {requests: 1, streams: 1000000, body_bytes: 1GiB}}",
        "server: {admin: {host: '::1', port: 0, token: ''}, surfaces: {scale: {default_vendor: v, default_model: m}}}",
        "defaults: {timeouts: {connect: 5, idle: 500ms}, headers: {X-A: b}, context_window: 1, completions: true}",
        "defaults: {url_params: {resource: a, account: 17}, api_version: 2024-10-21, api_key: ''}",
        "defaults: {on_unsupported: drop, context_length_exceeded_behavior: error}",
        "defaults: {on_unsupported: '${X:-error}', context_length_exceeded_behavior: truncate}",
        f"teams: {{t: {{keys: ['{KEY}'], models: ['*'], on_unsupported: drop, inference_extra_headers: false}}}}",
        "routes: {a: v/m, b: {targets: [v/m, {target: v/m/default, weight: 2}], policy: weighted}}",
        f"teams: {{t: {{keys: ['{KEY}'], models: ['*', v/*, v/m], routes: {{x: v/m}}}}}}",
        "include: []",
        "defaults:",
        "vendors: {v: }\nmodels: {v/m: , v/n: {deployments: {a: }}}",
        "defaults: {context_window: 128k, max_output_tokens: 1.5M}",
        "server: {ledger: off, timezone: Europe/Berlin}",
        "server: {ledger: {url: 'sqlite:l.db', keep: 40d, unread: reject}}",
        "server: {ledger: 'postgresql://h/l'}",
        "server: {ledger: '${LEDGER:-off}'}",
        "vendors: {v: {limits: {requests_per_minute: 3000, tokens_per_minute: 1M, burst: 1k}}}\n"
        "models: {v/n: {limits: {tokens_per_day: 5000}, deployments: {a: {limits: {concurrent: 5}}}}}",
        f"teams: {{t: {{keys: ['{KEY}'], limits: {{requests_per_hour: 5, models: {{v/m: {{burst: 2}}}}}}}}}}",
        f"teams: {{t: {{keys: ['{KEY}'], budget: {{usd: 500, per: month}}, tags: {{a: b}}, on_limit: reject}}}}",
        f"teams: {{t: {{keys: ['{KEY}'], budget: [{{tokens: 9M, per: day, at: 80%, then: warn}}]}}}}",
        f"teams: {{t: {{keys: ['{KEY}'], budget: [{{usd: 1.5, per: hour, at: 0.8, then: {{route: v/m}}}}]}}}}",
        f"teams: {{t: {{keys: ['{KEY}'], on_limit: {{queue: 5s}}}}}}",
        f"teams: {{t: {{keys: [{{hash: '{KEY}', name: ci, expires: 2036-03-01, limits: {{concurrent: 1}}}}]}}}}",
        f"teams: {{t: {{keys: [{{key: '{KEY}', not_after: 2036-03-01}}]}}}}",
        f"teams: {{t: {{keys: [{{hash: '{KEY}', models: [v/m]}}], models: ['*']}}}}",
    ],
)
def test_what_the_models_take_the_schema_takes(line: str) -> None:
    table = f"version: 1\n{line}" if "\nmodels" in line else HEAD + line
    assert complaints(table) == []
    assert passes(table)


@looped(
    "line",
    [
        "server: {prot: 80}",
        "server: {port: '80'}",
        "server: {port: 65536}",
        "server: {port: 1.5}",
        "server: {max_body: 32mb}",
        "server: {max_body: 10}",
        "server: {limits: {requests: 0}}",
        "server: {limits: {streams: 1000001}}",
        "server: {limits: {body_bytes: 10}}",
        "server: {limits: {bodies: 1}}",
        "server: {drain_timeout: soon}",
        "server: {drain_timeout: -1}",
        "server: {watch: 'yes'}",
        "server: {log: xml}",
        "server: {surfaces: {opnai: {}}}",
        "defaults: {retries: {attempts: 0}}",
        "defaults: {timeouts: {idle: 0}}",
        "defaults: {api_key: 1}",
        "defaults: {base_url: ftp://a}",
        "defaults: {url_params: {Bad Name: a}}",
        "defaults: {context_window: 0}",
        "defaults: {context_window: '128'}",
        "defaults: {context_window: 128kB}",
        "server:",
        "teams: {t: }",
        "defaults: {on_unsupported: ignore}",
        "defaults: {context_length_exceeded_behavior: true}",
        "defaults: {inference_extra_params: false}",
        f"teams: {{t: {{keys: ['{KEY}'], inference_extra_params: drop}}}}",
        "routes: {r: {targets: []}}",
        "routes: {r: {}}",
        "routes: {'a b': v/m}",
        "routes: {r: 'a b'}",
        "teams: {t: {keys: [sk-plain]}}",
        "teams: {t: {keys: []}}",
        "teams: {'a/b': {keys: []}}",
        "teams: {t: {models: ['*']}}",
        "defaults: {limits: {concurrent: 5}}",
        "vendors: {w: {limits: {requests_per_minute: 0}}}",
        "vendors: {w: {limits: {requests_per_year: 1}}}",
        "vendors: {w: {limits: {tokens_per_minute: 200kB}}}",
        "vendors: {w: {limits: {models: {w/m: {concurrent: 5}}}}}",
        "server: {ledger: true}",
        "server: {ledger: ledger.db}",
        "server: {ledger: {keep: long}}",
        f"teams: {{t: {{keys: ['{KEY}'], budget: {{usd: 500}}}}}}",
        f"teams: {{t: {{keys: ['{KEY}'], budget: {{usd: 500, per: year}}}}}}",
        f"teams: {{t: {{keys: ['{KEY}'], budget: {{usd: 5, per: day, then: stop}}}}}}",
        f"teams: {{t: {{keys: ['{KEY}'], budget: {{usd: 5, per: day, at: eighty}}}}}}",
        f"teams: {{t: {{keys: ['{KEY}'], budget: {{usd: 5, per: day, then: {{route: [v/m]}}}}}}}}",
        f"teams: {{t: {{keys: ['{KEY}'], on_limit: wait}}}}",
        f"teams: {{t: {{keys: ['{KEY}'], on_limit: {{queue: 2}}, tags: {{'a b': c}}}}}}",
        f"teams: {{t: {{keys: [{{hash: '{KEY}', key: '{KEY}'}}]}}}}",
        "teams: {t: {keys: [{name: ci}]}}",
    ],
)
def test_what_the_models_refuse_the_schema_refuses(line: str) -> None:
    assert complaints(HEAD + line)
    assert not passes(HEAD + line)


@looped("key", ["gpt", "v/", "v//m", "v/m*", "v/.."])
def test_a_model_key_is_checked_in_the_editor_too(key: str) -> None:
    text = f"version: 1\nvendors: {{v: {{}}}}\nmodels: {{'{key}': {{}}}}\n"
    assert complaints(text)
    assert not passes(text)


@looped(
    "line",
    [
        "server: {host: '${X}', port: '${X:-80}', max_body: '${X}', drain_timeout: '${X}', watch: '${X}', log: '${X}'}",
        "server: {limits: {requests: '${X}', streams: '${X:-9}', body_bytes: '${X}'}}",
        "server: {surfaces: {scale: {default_vendor: '${X}', default_model: '${X}'}}}",
        "defaults: {timeouts: {idle: '${X}'}, base_url: '${X}/v1', context_window: '${X}', allow_private: '${X}'}",
        "defaults: {url_params: {resource: '${X}'}, api_version: '${X}', api_key: '${file:/x}', headers: {A: '${X}'}}",
        "vendors: {v: {profile: '${X}'}}",
        "models: {v/m: {policy: '${X}', deployments: {a: {weight: '${X}', upstream_model: '${X}'}}}}",
        "routes: {r: '${X}', s: {targets: ['${X}', {target: '${X}', weight: '${X}'}]}}",
        "teams: {t: {keys: ['${X}'], models: ['${X}']}}",
        "teams: {t: {keys: ['${X}'], on_unsupported: '${X}', inference_extra_params: '${X:-true}'}}",
        "include: ['${X}.yaml']",
    ],
)
def test_a_reference_passes_wherever_a_value_may_stand(line: str) -> None:
    assert passes(f"version: 1\n{line}")


def test_every_key_has_a_description() -> None:
    schema = json_schema()
    sections = [schema, *schema["$defs"].values()]
    sections += [option for section in sections for option in section.get("anyOf", ())]
    bare = [
        name
        for section in sections
        for name, value in section.get("properties", {}).items()
        if not value.get("description")
    ]
    assert bare == []
