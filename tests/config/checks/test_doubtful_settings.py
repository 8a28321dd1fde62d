"""Warnings about settings that are probably unintended."""

from tests.config.tables import BASE, warnings
from tests.support.looped import looped

TEAM = f"{BASE}routes: {{}}\nteams:\n  t:\n    keys: ['sha256:{'a' * 64}']\n    models: []\n"


@looped(
    ("line", "env", "expected"),
    [
        (
            "models: {mock/echo: {cache: {ttl: 1m, where: redis, secret: canary-canary-canary}}}\n"
            "vendors: {mock: {}}\nserver: {shared: {redis: 'redis://localhost'}}",
            {},
            ["2:61 models.mock/echo.cache.secret: the secret is written in the config file itself"],
        ),
        (
            "vendors: {v: {api_key: sk-canary}}",
            {},
            ["2:24 vendors.v.api_key: the secret is written in the config file itself"],
        ),
        ("vendors: {v: {api_key: '${K:-sk-canary}'}}", {}, ["2:24 vendors.v.api_key: the secret is written"]),
        ("vendors: {v: {api_key: '${K:-sk-canary}'}}", {"K": "x"}, []),
        ("vendors: {v: {api_key: $canary}}", {}, ["2:24 vendors.v.api_key: the secret is written"]),
        (
            "vendors: {v: {api_key: $OPENAI_API_KEY}}",
            {},
            [
                "2:24 vendors.v.api_key: this text is sent unchanged, with the $: a reference is written "
                '"${OPENAI_API_KEY}"'
            ],
        ),
        (
            "vendors: {v: {headers: {X-A: $CANARY1, X-B: canary}}}",
            {},
            ['2:30 vendors.v.headers.X-A: this text is sent unchanged, with the $: a reference is written "${VAR}"'],
        ),
        ("vendors: {v: {api_key: '${K}'}}", {"K": "$OPENAI_API_KEY"}, []),
        ("vendors: {v: {api_key: ''}}", {}, []),
        ("vendors: {v: {api_key: '${K:-}'}}", {}, []),
        ("server: {admin: {token: canary}}", {}, ["2:25 server.admin.token: the secret is written"]),
        (
            "defaults: {api_key: '${K}'}\nvendors: {v: {}, w: {}}",
            {"K": "x"},
            ["2:21 defaults.api_key: this key is sent to 2 vendors: v, w"],
        ),
    ],
)
def test_a_secret_that_could_leak_is_a_warning(line: str, env: dict[str, str], expected: list[str]) -> None:
    told = [each for each in warnings(f"version: 1\n{line}\n", env) if "no models" not in each]
    assert [each[: len(start)] for each, start in zip(told, expected, strict=True)] == expected
    assert not any("canary" in each.lower() for each in told)


def test_a_weight_without_effect_is_a_warning() -> None:
    text = f"{BASE}routes:\n  r: {{targets: [{{target: local/x, weight: 2}}]}}\n".replace("eu: {}", "eu: {weight: 2}")
    assert warnings(text) == [
        "6:37 models.azure/gpt-4o.deployments.eu.weight: has no effect under policy priority",
        "9:35 routes.r.targets.0.weight: has no effect under policy priority",
    ]


@looped(
    ("policy", "read"),
    [("weighted", (0, 1, 2)), ("least_busy", (0, 1, 2)), ("round_robin", (0,)), ("fastest", (0,)), ("priority", ())],
)
def test_each_policy_reads_the_weights_it_reads(policy: str, read: tuple[int, ...]) -> None:
    for weight in range(3):
        weighed = f"{{policy: {policy}, deployments: {{a: {{weight: {weight}}}, b: {{}}}}}}"
        route = f"{{policy: {policy}, targets: [v/m, {{target: v/m/b, weight: {weight}}}]}}"
        text = f"version: 1\nvendors: {{v: {{}}}}\nmodels: {{v/m: {weighed}}}\nroutes: {{r: {route}}}\n"
        told = [each.partition(" ")[2] for each in warnings(text)]
        idle = [
            f"models.v/m.deployments.a.weight: has no effect under policy {policy}",
            f"routes.r.targets.1.weight: has no effect under policy {policy}",
        ]
        assert told == ([] if weight in read else idle)


@looped(
    ("settings", "doubted"),
    [
        ("affinity: auto", True),
        ("affinity: {load: 2}, policy: priority", True),
        ("affinity: off", False),
        ("affinity: {send: true}", False),
        ("affinity: auto, policy: fastest", False),
        ("policy: priority", False),
    ],
)
def test_an_affinity_under_priority_is_a_warning(settings: str, doubted: bool) -> None:
    text = f"""\
        version: 1
        vendors: {{v: {{}}}}
        models: {{v/m: {{{settings}, deployments: {{a: {{}}, b: {{}}}}}}, v/one: {{affinity: auto}}}}
        routes: {{r: {{{settings}, targets: [v/m/a, v/m/b]}}, one: {{targets: [v/m], affinity: auto}}}}
    """
    told = [each.partition(" ")[2] for each in warnings(text)]
    names = ("models.v/m", "routes.r") if doubted else ()
    assert told == [f"{name}.affinity: has no effect under policy priority" for name in names]


def test_nothing_to_ask_for_is_a_warning() -> None:
    assert warnings("version: 1\n") == ["1:1 models: no models: every request would get 404"]
    assert warnings(TEAM) == ["10:3 teams.t: this team may request no names: list models, or write routes"]


@looped(
    ("vendor", "model", "expected"),
    [
        ("cooldown: 30s, longest_cooldown: 5s", "", ["3:66 vendors.v.circuit_breaker.longest_cooldown"]),
        ("cooldown: 30s", "longest_cooldown: 5s", ["4:52 models.v/m.circuit_breaker.longest_cooldown"]),
        ("cooldown: 5s, longest_cooldown: 5s", "", []),
        ("longest_cooldown: 1s", "", []),
    ],
)
def test_a_longest_cooldown_below_the_first_is_a_warning(vendor: str, model: str, expected: list[str]) -> None:
    text = f"""\
        version: 1
        defaults: {{}}
        vendors: {{v: {{circuit_breaker: {{{vendor}}}}}}}
        models: {{v/m: {{circuit_breaker: {{{model}}}}}, v/n: {{}}}}
    """
    told = "is below cooldown (30s), which is reduced to it"
    assert warnings(text) == [f"{each}: {told}" for each in expected]


@looped(
    ("vendor", "model", "other", "expected"),
    [
        ("keep_alive: off", "keep_alive_json: true", "", ["4:44 models.v/m.timeouts.keep_alive_json"]),
        ("keep_alive: off, keep_alive_json: true", "", "", ["3:60 vendors.v.timeouts.keep_alive_json"]),
        ("keep_alive: off, keep_alive_json: true", "", "keep_alive: 5s", []),
        ("keep_alive_json: true", "keep_alive: off", "", []),
        ("keep_alive: off, keep_alive_json: false", "", "", []),
        ("keep_alive_json: true", "", "", []),
    ],
)
def test_white_space_that_is_never_sent_is_a_warning(vendor: str, model: str, other: str, expected: list[str]) -> None:
    text = f"""\
        version: 1
        defaults: {{}}
        vendors: {{v: {{timeouts: {{{vendor}}}}}}}
        models: {{v/m: {{timeouts: {{{model}}}}}, v/n: {{timeouts: {{{other}}}}}}}
    """
    assert warnings(text) == [f"{each}: has no effect: keep_alive is off" for each in expected]


def test_discovery_without_an_entry_for_any_model_is_a_warning() -> None:
    vendors = "version: 1\nvendors:\n  v: {profile: openai, api_key: '${KEY}', discover: true}\n"
    told = "3:53 vendors.v.discover: has no effect: discovered models are listed under v/*, which is missing in models"
    assert warnings(vendors + "models: {v/m: {}}\n", {"KEY": "k"}) == [told]
    assert warnings(vendors + "models: {v/m: {}, v/*: {}}\n", {"KEY": "k"}) == []


@looped(
    ("route", "warned"),
    [
        ("{targets: [v/text-embedding-3-small, v/bge-m3]}", True),
        ("{targets: [v/text-embedding-3-small/a, v/bge-m3]}", True),
        ("{targets: [v/text-embedding-3-small, v/bge-m3], same_space: true}", False),
        ("{targets: [v/text-embedding-3-small/a, v/text-embedding-3-small/b]}", False),
        ("{targets: [v/text-embedding-3-small, v/chat]}", False),
        ("{targets: [v/text-embedding-3-small, v/chat, v/bge-m3]}", True),
    ],
)
def test_a_route_over_models_of_different_spaces_is_a_warning(route: str, warned: bool) -> None:
    table = (
        "version: 1\nvendors: {v: {}}\nmodels:\n  v/text-embedding-3-small: {deployments: {a: {}, b: {}}}\n"
        f"  v/bge-m3: {{}}\n  v/chat: {{}}\nroutes:\n  r: {route}\n"
    )
    found = warnings(table)
    assert bool(found) is warned
    if warned:
        assert found[0].startswith("8:3 routes.r: embeddings are refused here: v/text-embedding-3-small and v/bge-m3")


def test_settings_of_a_route_that_do_not_hold_behind_another_are_a_warning() -> None:
    text = (
        f"{BASE}routes:\n"
        "  real: {targets: [local/x], cache: {ttl: 5s}, fallbacks: {content_filter: [local/y]}}\n"
        "  alias: real\n"
        "  one: {targets: [alias]}\n"
        "  two: {targets: [local/x, alias]}\n"
        "  said: {targets: [alias, local/x], cache: {where: 'off'}, fallbacks: {}}\n"
    )
    without = "without effect here, since there are other targets; if intended for two, write it there"
    assert [each for each in warnings(text) if "of this route" in each] == [
        f"12:28 routes.two.targets.1: fallbacks and cache of this route: {without}"
    ]


@looped(
    ("routes", "expected"),
    [
        ("real: {targets: [local/x], fallbacks: {context_window: [local/y]}}\n  alias: real", []),
        (
            "real: {targets: [local/x], fallbacks: {context_window: [local/y], content_filter: [local/x]}}\n"
            "  mid: real\n  alias: {targets: [mid], fallbacks: {content_filter: [local/y]}}",
            [
                "routes.alias.fallbacks: replaces all fallbacks of real: its context_window (local/y) does "
                "not apply here; write it here too, or an empty list"
            ],
        ),
        (
            "real: {targets: [local/x], fallbacks: {context_window: [local/y]}}\n"
            "  alias: {targets: [real], fallbacks: {content_filter: [local/y], context_window: []}}",
            [],
        ),
        (
            "real: {targets: [local/x], fallbacks: {context_window: [local/y]}}\n"
            "  alias: {targets: [real], fallbacks: {}}",
            [],
        ),
        ("alias: {targets: [local/x], fallbacks: {content_filter: [local/y]}}", []),
    ],
)
def test_fallbacks_that_replace_others_of_another_kind_are_a_warning(routes: str, expected: list[str]) -> None:
    told = warnings(f"{BASE}routes:\n  {routes}\n")
    assert [each.partition(" ")[2] for each in told if "fallbacks" in each] == expected
