"""The rules of a name's response cache."""

from config.sections.cache_section import CacheSection
from proxy.routing.deployment_load import IDLE
from proxy.routing.resolve_model import plan_for
from proxy.routing.route_settings import CacheRules, cache_rules
from proxy.routing.snapshot import ANYONE
from tests.proxy.kit.tables import snapshot

TABLE = """
defaults: {cache: {ttl: 1s}}
vendors:
  v: {profile: openai_compatible, base_url: "http://127.0.0.1:1/v1", allow_private: true}
  w: {profile: openai_compatible, base_url: "http://127.0.0.1:1/v1", allow_private: true, cache: {ttl: 2s}}
models:
  v/m: {}
  v/own: {cache: {ttl: 3s}, deployments: {eu: {}, us: {}}}
  v/off: {cache: {where: off}}
  w/*: {}
routes:
  plain: {targets: [v/own]}
  own: {targets: [v/off, v/m], cache: {ttl: 4s, stale: 5s, scope: table}}
"""


def test_the_nearest_level_that_says_cache_says_all_of_it() -> None:
    table = snapshot(TABLE)
    found = {
        name: rules and rules.ttl
        for name in ("v/m", "v/own", "v/own/eu", "v/off", "w/any", "plain", "own")
        if (rules := plan_for(table, ANYONE, name, "openai", IDLE).cache) or True
    }
    assert found == {
        **{"v/m": 1.0, "v/own": 3.0, "v/own/eu": 3.0, "v/off": None, "w/any": 2.0},
        **{"plain": 3.0, "own": 4.0},
    }


def test_rules_in_words() -> None:
    assert CacheRules(600, 0, "team", False, 1024).words == "600 s for each team, in memory"
    words = "4 s and 5 s more while no deployment answers for all teams together, at Redis"
    assert CacheRules(4, 5, "table", True, 1024).words == words


def test_the_seal_is_the_secret_s_and_does_not_show_it() -> None:
    one, other = (
        cache_rules(CacheSection.model_validate({"where": "redis", "secret": secret}))
        for secret in ("canary-canary-canary", "another-canary-canary")
    )
    assert one is not None
    assert other is not None
    assert one.seal != other.seal
    assert "canary" not in one.seal
    assert cache_rules(None) is None
