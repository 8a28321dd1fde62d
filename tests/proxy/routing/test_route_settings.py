"""Settings of routes: which apply to a name that stands for another."""

from dataclasses import fields, replace

from config.sections.route_section import ROUTE_SETTINGS
from proxy.routing.deployment_load import IDLE
from proxy.routing.resolve_model import plan_for, settings_of
from proxy.routing.route_settings import RouteSettings
from proxy.routing.snapshot import ANYONE
from tests.proxy.kit.tables import digest_of, snapshot
from tests.support.looped import looped

TABLE = snapshot(
    f"""
vendors: {{a: {{profile: openai, api_key: k}}, b: {{profile: openai, api_key: k}}}}
models:
  a/m: {{}}
  a/n: {{}}
  a/kept: {{cache: {{ttl: 9s}}}}
  b/m: {{}}
  b/n: {{}}
routes:
  real:
    targets: [a/m, a/n]
    fallbacks: {{context_window: [b/m], content_filter: [b/n]}}
    same_space: true
    cache: {{ttl: 5s}}
    affinity: {{load: 2}}
    hedge: {{burst: 2}}
  alias: real
  deep: alias
  deepest: {{targets: [deep], policy: weighted}}
  partly: {{targets: [real], cache: {{where: "off"}}, same_space: false}}
  over_partly: partly
  without: {{targets: [alias], fallbacks: {{}}}}
  mixed: {{targets: [real, b/n]}}
  of_model: a/kept
  of_of_model: of_model
teams:
  t:
    keys: ["{digest_of("t")}"]
    models: ["*"]
    routes:
      real: {{targets: [b/n], cache: {{ttl: 7s}}}}
      mine: alias
  u: {{keys: ["{digest_of("u")}"], models: ["*"], routes: {{mine: deep}}}}
"""
)

WHOLE = (["b/m", "b/n"], True, 5.0)
NOTHING: tuple[list[str], bool, float | None] = ([], False, None)


@looped(
    ("name", "team", "expected"),
    [
        ("real", "", WHOLE),
        ("alias", "", WHOLE),
        ("deep", "", WHOLE),
        ("deepest", "", WHOLE),
        ("mine", "u", WHOLE),
        ("partly", "", (["b/m", "b/n"], False, None)),
        ("over_partly", "", (["b/m", "b/n"], False, None)),
        ("without", "", ([], True, 5.0)),
        ("mixed", "", NOTHING),
        ("of_model", "", ([], False, 9.0)),
        ("of_of_model", "", ([], False, 9.0)),
        ("alias", "t", ([], False, 7.0)),
        ("mine", "t", ([], False, 7.0)),
    ],
)
def test_a_name_that_stands_for_a_route_has_each_setting_of_it_that_it_does_not_write(
    name: str, team: str, expected: tuple[list[str], bool, float | None]
) -> None:
    found = plan_for(TABLE, TABLE.teams[team] if team else ANYONE, name, "openai", IDLE)
    fallbacks = [f"{each.vendor}/{each.model}" for each in found.every_target if each not in found.targets]
    assert (fallbacks, found.same_space, found.cache and found.cache.ttl) == expected


def test_every_setting_of_a_route_in_the_table_is_taken_over() -> None:
    assert {each.name for each in fields(RouteSettings)} == {*ROUTE_SETTINGS, "written", "fallbacks_of"}
    whole = settings_of(TABLE, ANYONE, TABLE.routes["real"])
    assert whole.written == set(ROUTE_SETTINGS)
    assert RouteSettings().over(whole, "real") == replace(whole, fallbacks_of="real")


@looped(
    ("name", "team", "source"),
    [
        ("real", "", ""),
        ("alias", "", "real"),
        ("deepest", "", "real"),
        ("over_partly", "", "real"),
        ("mine", "u", "real"),
        ("without", "", ""),
        ("mixed", "", ""),
        ("of_model", "", ""),
        ("alias", "t", ""),
    ],
)
def test_the_route_that_fallbacks_are_taken_from_is_known(name: str, team: str, source: str) -> None:
    user = TABLE.teams[team] if team else ANYONE
    assert settings_of(TABLE, user, user.routes.get(name) or TABLE.routes[name]).fallbacks_of == source
