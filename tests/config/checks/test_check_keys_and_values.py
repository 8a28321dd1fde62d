"""Pydantic's errors as problems: messages and positions."""

from config.checks.check_keys_and_values import check_sections
from config.reading.tree_values import Value
from config.reading.yaml_tree import parse
from tests.config.tables import complaints
from tests.support.looped import looped

WRITES = "converts it"
QUOTE_BOOL = "expected text; YAML reads this unquoted word as true or false: put it in quotes"
QUOTE_NUMBER = "expected text; YAML reads this unquoted word as a number: put it in quotes"


@looped(
    ("line", "expected"),
    [
        ("server: {prot: 1}", "2:10 server.prot: unknown key; did you mean port?"),
        ("serverr: {}", "2:1 serverr: unknown key; did you mean server?"),
        ("xyzzy: 1", "2:1 xyzzy: unknown key"),
        *(
            (
                f"{key}: {{}}",
                f"2:1 {key}: a configuration of another gateway: `dragoman import {gateway} FILE` {WRITES}",
            )
            for key, gateway in {"model_list": "litellm", "general_settings": "litellm"}.items()
        ),
        ("providers: {}", "2:1 providers: unknown key"),
        ("vendors:\nacme: {}", "3:1 acme: unknown key; if it belongs to vendors, indent it further"),
        (
            "vendors: {v: {timeouts: , idle_time: 1s}}",
            "2:27 vendors.v.idle_time: unknown key; if it belongs to timeouts, indent it further",
        ),
        (
            "models:\n  - v/m",
            "3:3 models: expected a mapping, found a list; write each model on a line of its own, its name as a key: "
            "no -, and a colon after it",
        ),
        (
            "vendors:\n  openai",
            "3:3 vendors: expected a mapping, found text; write each vendor on a line of its own, its name as a key: "
            "no -, and a colon after it",
        ),
        (
            "models: {v/m: {deployments: {a: {wieght: 1}}}}",
            "2:34 models.v/m.deployments.a.wieght: unknown key; did you mean weight?",
        ),
        ("server: {workers: -2}", "2:19 server.workers: must be at least 1 or auto"),
        ("server: {workers: many}", "2:19 server.workers: must be a whole number or auto"),
        ("server: {workers: 1.5}", "2:19 server.workers: must be a whole number or auto"),
        ("defaults: {cache: off}", "2:19 defaults.cache: expected a mapping, found true or false; write {where: off}"),
        ("defaults: {cache: 10m}", "2:19 defaults.cache: expected a mapping, found text; write {ttl: 10m}"),
        ("defaults: {cache: true}", "2:19 defaults.cache: expected a mapping, found true or false; write {}"),
        ("defaults: {cache: lots}", "2:19 defaults.cache: expected a mapping, found text"),
        ("server: {shared: {}}", "2:10 server.shared.redis: required key is missing"),
        (
            "server: {shared: {redis: localhost:6379}}",
            "2:26 server.shared.redis: must begin with redis://, rediss:// (TLS) or unix://, such as "
            "redis://cache.internal:6379/0",
        ),
        (
            'server: {shared: {redis: "redis://h", prefix: "a b"}}',
            "2:47 server.shared.prefix: a prefix must be 1 to 64 letters, digits, '.', '_' or '-', the first a letter "
            "or digit",
        ),
        (
            "defaults: {timeouts: {first_token: 1s}}",
            "2:23 defaults.timeouts.first_token: unknown key; did you mean first_event?",
        ),
        ("defaults: {timeouts: {keep_alive: 10ms}}", "2:35 defaults.timeouts.keep_alive: must be at least 0.1 or off"),
        ("defaults: {timeouts: {keep_alive: on}}", "2:35 defaults.timeouts.keep_alive: must be a number or off"),
        ("teams: {t: {key: []}}", "2:13 teams.t.key: unknown key; did you mean keys?"),
        ("defaults: {concurrent: 0}", "2:24 defaults.concurrent: must be at least 1"),
        ("defaults: {retries: {attempts: 0}}", "2:32 defaults.retries.attempts: must be at least 1"),
        ("defaults: {on_unsupported: dorp}", "2:28 defaults.on_unsupported: must be error or drop; did you mean drop?"),
        ("vendors: {v: {on_unsupported: true}}", "2:31 vendors.v.on_unsupported: must be error or drop"),
        (
            "models: {v/m: {context_length_exceeded_behavior: cut}}",
            "2:50 models.v/m.context_length_exceeded_behavior: must be truncate or error",
        ),
        (
            "models: {v/m: {deployments: {a: {context_length_exceeded_behavior: [error]}}}}",
            "2:68 models.v/m.deployments.a.context_length_exceeded_behavior: must be truncate or error",
        ),
        ("teams: {t: {on_unsupported: ignore}}", "2:29 teams.t.on_unsupported: must be error or drop"),
        (
            "teams: {t: {inference_extra_params: drop}}",
            "2:37 teams.t.inference_extra_params: expected true or false, found text",
        ),
        (
            "teams: {t: {inference_extra_headers: null}}",
            "2:38 teams.t.inference_extra_headers: expected true or false, found nothing",
        ),
        ("defaults: {inference_extra_params: false}", "2:12 defaults.inference_extra_params: unknown key"),
        ("defaults: {budget: {usd: 1}}", "2:12 defaults.budget: unknown key"),
        (
            "models: {v/m: {policy: wieghted}}",
            "2:24 models.v/m.policy: must be priority, weighted, round_robin, least_busy or fastest;"
            " did you mean weighted?",
        ),
        ("server: {log: xml}", "2:15 server.log: must be json or text"),
        ("server: {port: lots}", "2:16 server.port: expected a whole number, found text"),
        ("server: {port: 1.5}", "2:16 server.port: expected a whole number; 1.5 is not one"),
        (
            "models: {v/m: {deployments: {a: {weight: 0.7}}}}",
            "2:42 models.v/m.deployments.a.weight: expected a whole number; 0.7 is not one",
        ),
        ("defaults: {timeouts: {idle: 99999d}}", "2:29 defaults.timeouts.idle: must be at most 1d"),
        ("server: {drain_grace: 99999d}", "2:23 server.drain_grace: must be at most 1d"),
        ("server: {max_body: 1}", "2:20 server.max_body: must be at least 1KiB"),
        ("server: {stall_limit: 1ms}", "2:23 server.stall_limit: must be at least 1s, or 0 for never"),
        ("server: {stall_limit: 999ms}", "2:23 server.stall_limit: must be at least 1s, or 0 for never"),
        ("server: {port: 65536}", "2:16 server.port: must be at most 65535"),
        ("server: {port: -1}", "2:16 server.port: must be at least 0"),
        ("server: {watch: 1}", "2:17 server.watch: expected true or false, found a number"),
        (
            "server: {admin: }",
            "2:17 server.admin: expected a mapping, found nothing; indent the lines that belong to it, or "
            "write {} for an empty one",
        ),
        ("server: [a]", "2:9 server: expected a mapping, found a list"),
        ("vendors: {v: {profile: no}}", f"2:24 vendors.v.profile: {QUOTE_BOOL}"),
        ("vendors: {v: {api_key: 12345}}", f"2:24 vendors.v.api_key: {QUOTE_NUMBER}"),
        ("vendors: {v: {api_version: 1.5}}", f"2:28 vendors.v.api_version: {QUOTE_NUMBER}"),
        ("vendors: {v: {api_key: {a: 1}}}", "2:24 vendors.v.api_key: expected text, found a mapping"),
        ("vendors: {v: {headers: {X-A: on}}}", f"2:30 vendors.v.headers.X-A: {QUOTE_BOOL}"),
        ("vendors: {v: {headers: {Host: a}}}", "2:25 vendors.v.headers.Host: this header is set by the gateway"),
        ("vendors: {v: {headers: {X-A: a, x-a: b}}}", "2:24 vendors.v.headers: two header names differ only in case"),
        ("vendors: {v: {timeouts: {idle: 0s}}}", "2:32 vendors.v.timeouts.idle: must be more than 0"),
        ("vendors: {v: {timeouts: {idle: 2d}}}", "2:32 vendors.v.timeouts.idle: must be at most 1d"),
        ("vendors: {v: {timeouts: {idle: soon}}}", "2:32 vendors.v.timeouts.idle: must be a duration with its unit"),
        ("vendors: {a b: {}}", "2:11 vendors.a b: a vendor name must be"),
        ("models: {gpt: {}}", "2:10 models.gpt: a model key is vendor/model or vendor/*"),
        (
            "server: {surfaces: {opnai: {}}}",
            "2:21 server.surfaces.opnai: must be openai, scale, fireworks, pais, anthropic or responses; "
            "did you mean openai or pais?",
        ),
        ("routes: {r: {}}", "2:10 routes.r.targets: required key is missing"),
        ("routes: {r: {targets: []}}", "2:23 routes.r.targets: must not be empty"),
        (
            "routes: {r: [v/m, v/n]}",
            "2:13 routes.r: expected a name or a mapping, found a list; write r: {targets: [v/m, v/n]}",
        ),
        (
            f"teams: {{t: {{keys: ['sha256:{'a' * 64}'], routes: {{r: [v/m]}}}}}}",
            "2:108 teams.t.routes.r: expected a name or a mapping, found a list; write r: {targets: [v/m]}",
        ),
        (
            "routes: {r: [{target: v/m, weight: 2}]}",
            "2:13 routes.r: expected a name or a mapping, found a list; write r: {targets: [...]}",
        ),
        (
            "routes: {r: ['sk canary', v/m]}",
            "2:13 routes.r: expected a name or a mapping, found a list; write r: {targets: [...]}",
        ),
        ("routes: {r: {targets: v/m}}", "2:23 routes.r.targets: expected a list, found text; put it in [ ]"),
        (
            "routes:\n  r:\n    targets:\n      -v/m\n      -v/n",
            "5:7 routes.r.targets: expected a list, found text; a space is missing after the dash",
        ),
        (
            "vendors: {acme: {}, openai: {}}\nmodels: {gpt-4o: {}}",
            "3:10 models.gpt-4o: a model key is vendor/model or vendor/*; did you mean acme/gpt-4o or openai/gpt-4o?",
        ),
        (
            "vendors: {v: }\nmodels:\n  v/m:\n  max_output_tokens: 128k",
            "5:3 models.max_output_tokens: max_output_tokens is a setting of a model: indent it further, below "
            "the model's name",
        ),
        (
            "vendors:\n  v:\n  api_key: canary",
            "4:12 vendors.api_key: api_key is a setting of a vendor: indent it further, below the vendor's name",
        ),
        (
            "routes:\n  r:\n  targets: [v/m]",
            "4:12 routes.targets: targets is a setting of a route: indent it further, below the route's name",
        ),
        (
            "models: {v/m: {context_window: 128kB}}",
            "2:32 models.v/m.context_window: must be a number of tokens, such as 128000, 128k or 1m (k is 1,000, m is "
            "1,000,000)",
        ),
        ("routes: {r: {targets: [1]}}", "2:24 routes.r.targets.0: expected a name or a mapping, found a number"),
        ("routes: {r: v/*}", "2:13 routes.r: a target is one model, deployment or route"),
        ("routes: {r: {targets: [{target: a b}]}}", "2:33 routes.r.targets.0.target: a target is one model"),
        ("teams: {t: {keys: [sk-live-canary]}}", "2:20 teams.t.keys.0: must be sha256: and 64 hex digits"),
        ("teams: {t: {keys: [{key: sk-live-canary}]}}", "2:26 teams.t.keys.0.key: must be sha256: and 64 hex digits"),
        ("teams: {t: {keys: [{not_after: 2026-12-31}]}}", "2:20 teams.t.keys.0: required key hash is missing"),
        ("teams: {t: {keys: [5]}}", "2:20 teams.t.keys.0: expected a digest or a mapping, found a number"),
        (
            f"teams: {{t: {{keys: [{{key: 'sha256:{'a' * 64}', not_after: 2026}}]}}}}",
            "2:112 teams.t.keys.0.not_after: expected a date or a time, found a number",
        ),
        (
            f"teams: {{t: {{keys: [{{key: 'sha256:{'a' * 64}', name: 'a key'}}]}}}}",
            "2:107 teams.t.keys.0.name: the name of a key must be 1 to 64 letters, digits, '.', '_' or '-'",
        ),
        ("teams: {t: {keys: []}}", "2:19 teams.t.keys: must not be empty"),
        ("teams: {t: {keys: sk-canary}}", "2:19 teams.t.keys: expected a list, found text"),
    ],
)
def test_a_mistake_is_reported_at_its_place(line: str, expected: str) -> None:
    told = complaints(f"version: 1\n{line}\n")
    assert any(each.startswith(expected) for each in told), told
    assert not any("canary" in each for each in told)


_NO_SPACE = "a space is missing after the colon of"


@looped(
    ("line", "expected"),
    [
        ("vendors: {v: {api_key:sk-canary}}", [f"2:15 vendors.v.api_key: {_NO_SPACE} api_key"]),
        ("vendors: {v: {api_key:'canary'}}", [f"2:15 vendors.v.api_key: {_NO_SPACE} api_key"]),
        ("vendors: {v: {base_url:https://u:canary@h/v1}}", [f"2:15 vendors.v.base_url: {_NO_SPACE} base_url"]),
        (
            "vendors: {v: {headers: {x-api-key:sk-canary}}}",
            [f"2:25 vendors.v.headers.x-api-key: {_NO_SPACE} x-api-key"],
        ),
        ("vendors: {v: {url_params: {a:canary}}}", [f"2:28 vendors.v.url_params.a: {_NO_SPACE} a"]),
        ("vendors: {v:canary}", [f"2:11 vendors.v: {_NO_SPACE} v"]),
        ('server: {admin: {token:"canary"}}', [f"2:18 server.admin.token: {_NO_SPACE} token"]),
        (
            "vendors: {v: {credentials: {oidc: {client_secret:canary, token_url: https://h/t, client_id: c}}}}",
            [f"2:36 vendors.v.credentials.oidc.client_secret: {_NO_SPACE} client_secret"],
        ),
        ("vendors:\n  v:\n    api_key:canary", [f"4:5 vendors.v: {_NO_SPACE} api_key"]),
        ("vendors:\n  v:\n    api_key:${K}", [f"4:5 vendors.v: {_NO_SPACE} api_key"]),
        ("vendors: {v: {sk-canary-1: x}}", ["2:15 vendors.v.sk-…: unknown key"]),
        ("vendors:\n  v:\n    sk-canary-1:\n", ["4:5 vendors.v.sk-…: unknown key"]),
        ("vendors:\n  v: {sk-canary-1:x}", [f"3:7 vendors.v.sk-…: {_NO_SPACE} sk-…"]),
        ("vendors: {v: {0c7a1n2a3r4y5b6c7d8e9f: x}}", ["2:15 vendors.v.0c7…: unknown key"]),
    ],
)
def test_a_value_that_became_part_of_its_key_is_not_told(line: str, expected: list[str]) -> None:
    assert complaints(f"version: 1\n{line}\n", {"K": "canary"}) == expected


@looped(
    ("text", "expected"),
    [
        ("server: {}\n", "1:1 version: required key is missing"),
        ("version: 2\n", "1:10 version: must be 1"),
        ("version: '1'\n", "1:10 version: must be 1, without quotes"),
    ],
)
def test_the_version_must_be_there_and_known(text: str, expected: str) -> None:
    assert complaints(text) == [expected]


def test_what_is_sound_is_kept_beside_what_is_refused() -> None:
    text = """\
version: 2
server: {port: x, log: text}
vendors: {v: {api_key: 1, profile: vllm}, w: 5}
models: {v/m: {deployments: {a: {weight: x}, b: []}}}
routes: {r: {targets: [1, v/m]}, s: {}}
teams: {t: {keys: [x], models: [v/m, 3]}}
unknown: 1
"""
    root = parse(text, "t").root
    assert root is not None
    values: dict[str, Value] = {
        "version": 2,
        "server": {"port": "x", "log": "text"},
        "vendors": {"v": {"api_key": 1, "profile": "vllm"}, "w": 5},
        "models": {"v/m": {"deployments": {"a": {"weight": "x"}, "b": []}}},
        "routes": {"r": {"targets": [1, "v/m"]}, "s": {}},
        "teams": {"t": {"keys": ["x"], "models": ["v/m", 3]}},
        "unknown": 1,
    }
    validated = check_sections(values, root)
    assert len(validated.problems) == 11
    config = validated.config
    assert config is not None
    assert (config.server.log.form, config.server.port) == ("text", 8080)
    assert (list(config.vendors), config.vendors["v"].profile) == (["v"], "vllm")
    assert list(config.models["v/m"].deployments) == ["a"]
    assert [target.target for target in config.routes["r"].targets][1:] == ["v/m"]
    assert config.teams["t"].models[0] == "v/m"
