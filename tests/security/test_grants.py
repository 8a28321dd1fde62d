"""Allow lists against random configurations: a grant gives access to the deployments of its own name, and to no other
account."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from config.problem import ConfigError
from proxy.errors import GatewayError
from proxy.routing.deployment_load import IDLE
from proxy.routing.resolve_model import plan_for, visible
from proxy.routing.snapshot import Snapshot, Team
from tests.proxy.kit.tables import digest_of, snapshot
from tests.support.examples import examples
from tests.support.looped import looped

Account = tuple[str, str]
"""A deployment of the configuration, and the model of its requests."""

HIDDEN = """
vendors:
  geo: {profile: openai_compatible, base_url: "https://eu.example/v1"}
  other: {profile: openai_compatible, base_url: "https://other.example/v1"}
models:
  geo/gpt: {deployments: {eu: {}}}
  geo/*: {base_url: "https://wild.example/v1"}
  other/known: {}
  other/routed: {}
routes:
  other/routed: geo/gpt
server: {surfaces: {openai: {default_vendor: geo}}}
teams:
""" + "".join(
    f'  {name}: {{keys: ["{digest_of(name)}"], models: ["{grant}"]}}\n'
    for name, grant in {
        "deployment": "geo/gpt/eu",
        "model": "geo/gpt",
        "wild": "geo/small",
        "route": "other/routed",
        "vendor": "other/*",
    }.items()
)


def accounts(table: Snapshot, team: Team, name: str, surface: str = "openai") -> set[Account]:
    """Return the accounts that a request for a name reaches, including fallbacks. Return an empty set if it is
    refused."""
    try:
        planned = plan_for(table, team, name, surface, IDLE)
    except GatewayError:
        return set()
    return {(target.label, target.model) for target in planned.targets}


@looped(
    ("team", "name", "reached"),
    [
        ("deployment", "geo/gpt/eu", {("geo/gpt/eu", "gpt")}),
        ("deployment", "geo/gpt/eu/default", set()),
        ("deployment", "gpt/eu/default", set()),  # by the surface's default vendor
        ("deployment", "geo/gpt/eu/x", set()),
        ("deployment", "geo/gpt", set()),
        ("deployment", "geo/gpt/default", set()),
        ("model", "geo/gpt", {("geo/gpt/eu", "gpt")}),
        ("model", "geo/gpt/eu", {("geo/gpt/eu", "gpt")}),
        ("model", "geo/gpt/default", set()),  # the wildcard's model of the same name
        ("model", "geo/gpt/eu/default", set()),
        ("wild", "geo/small", {("geo/*/default", "small")}),
        ("wild", "small", {("geo/*/default", "small")}),
        ("wild", "geo/small/default", {("geo/*/default", "small")}),
        ("wild", "geo/small/more", set()),
        ("route", "other/routed", {("geo/gpt/eu", "gpt")}),
        ("route", "other/routed/default", set()),  # the model that the route shadows
        ("vendor", "other/known", {("other/known/default", "known")}),
        ("vendor", "other/new", set()),  # the default vendor's model, by a name that begins like the granted one
    ],
)
def test_threat_12_a_grant_is_never_read_as_another_account_s(team: str, name: str, reached: set[Account]) -> None:
    table = snapshot(HIDDEN)
    assert accounts(table, table.teams[team], name) == reached


WORDS = ("x", "default")
PATHS = [f"v/{'/'.join(rest)}" for length in (1, 2, 3) for rest in product(WORDS, repeat=length)]
UNIVERSE = ["r", *PATHS, *(path.removeprefix("v/") for path in PATHS), *(path.replace("v/", "w/", 1) for path in PATHS)]
FULL = [*UNIVERSE, *(f"v/{name}" for name in UNIVERSE)]
"""Names with the vendor, including bare names of a default vendor."""
DEPLOYMENTS = st.sets(st.sampled_from(WORDS), max_size=2)
TABLES = st.dictionaries(st.sampled_from([*PATHS[:6], "w/x", "w/x/x", "w/*"]), DEPLOYMENTS, max_size=5)
ROUTES = st.dictionaries(
    st.sampled_from(["r", *PATHS[:6]]), st.lists(st.sampled_from(PATHS), min_size=1, max_size=2), max_size=2
)
GRANTS = st.lists(st.sampled_from([*UNIVERSE, "v/*", "w/*", "v/x/*"]), min_size=1, max_size=3, unique=True)


def text_of(models: dict[str, set[str]], routes: dict[str, list[str]], own: dict[str, list[str]]) -> str:
    """Return a configuration of two vendors, with `v/*` among its models, and a team that may use nothing but its own
    routes."""

    def written(entries: dict[str, list[str]]) -> str:
        return ", ".join(f"{name}: {{targets: [{', '.join(targets)}]}}" for name, targets in entries.items())

    rows = {"v/*": set[str](), **models}.items()
    lists = "".join(
        f"  {name}: {{deployments: {{{', '.join(f'{each}: {{}}' for each in sorted(those))}}}}}\n"
        if those
        else f"  {name}: {{}}\n"
        for name, those in rows
    )
    return (
        'vendors:\n  v: {profile: openai_compatible, base_url: "https://v.example/v1"}\n'
        '  w: {profile: openai_compatible, base_url: "https://w.example/v1"}\n'
        f"models:\n{lists}routes: {{{written(routes)}}}\n"
        f'teams:\n  t: {{keys: ["{digest_of("t")}"], routes: {{{written(own)}}}}}\n'
        "server: {surfaces: {scale: {default_vendor: v}}}\n"
    )


def meant(grant: str) -> Iterable[str]:
    """Return the names that a grant stands for."""
    if grant.endswith("/*"):
        return [name for name in FULL if name.startswith(grant[:-1])]
    return [grant]


@given(
    TABLES,
    ROUTES,
    st.dictionaries(st.sampled_from(["r", "v/x", "v/x/x"]), st.lists(st.just("w/x"), min_size=1), max_size=1),
    GRANTS,
)
@examples(150)
def test_threat_12_what_a_team_reaches_is_exactly_what_its_grants_lead_to(
    models: dict[str, set[str]], routes: dict[str, list[str]], own: dict[str, list[str]], grants: list[str]
) -> None:
    try:
        table = snapshot(text_of(models, routes, own))
    except ConfigError:
        return  # a circle, a hidden deployment, a name that leads nowhere
    team = replace(table.teams["t"], allow=tuple(grants))
    everything = replace(team, allow=("*",))
    # Without a default vendor, a bare name is a route or nothing.
    expected = {
        account
        for name in [*team.routes, *(name for grant in grants for name in meant(grant))]
        for account in accounts(table, everything, name, "anthropic")
    }
    reached = {
        account
        for name in FULL
        for surface in ("anthropic", "scale")
        # With its vendor as prefix, a bare name is a model, even if the complete name is also a route.
        if surface == "anthropic" or f"v/{name}" not in {**routes, **own}
        for account in accounts(table, team, name, surface)
    }
    assert reached == expected
    shown = {account for name in visible(table, team) for account in accounts(table, team, name)}
    assert shown <= expected
    assert all(accounts(table, team, name) for name in visible(table, team))
