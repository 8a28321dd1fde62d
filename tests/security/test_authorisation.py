"""Teams, names and fallbacks in all combinations: a request reaches only deployments that were granted, and learns no
other name."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pytest
from typing_extensions import override

from providers.target import Target
from proxy.errors import GatewayError
from proxy.routing.deployment_load import Idle
from proxy.routing.resolve_model import nearest, plan_for, visible
from proxy.routing.snapshot import Snapshot, Team
from proxy.surfaces.registry import SURFACES
from tests.proxy.kit.tables import digest_of, snapshot
from tests.support.looped import looped

ALLOWED: Mapping[str, Sequence[str]] = {
    "nothing": [],
    "everything": ["*"],
    "vendor": ["a/*"],
    "model": ["a/one"],
    "nested": ["a/one/more"],
    "deployment": ["a/two/eu"],
    "wildcard": ["w/*"],
    "wild-name": ["w/x"],
    "route": ["fast"],
    "outer": ["outer"],
    "several": ["b/one", "fast", "a/two/us"],
}
TABLE = """
vendors:
  a: {profile: openai_compatible, base_url: "https://a.example/v1"}
  b: {profile: openai_compatible, base_url: "https://b.example/v1"}
  w: {profile: openai_compatible, base_url: "https://w.example/v1"}
  fireworks: {api_key: k}
models:
  a/one: {}
  a/one/more: {}
  a/onerous: {}
  a/two: {deployments: {eu: {}, us: {}}}
  b/one: {}
  w/*: {deployments: {x: {}, y: {}}}
  fireworks/m: {}
routes:
  fast: {targets: [a/one, b/one]}
  hidden: {targets: [a/two, w/secret]}
  outer: {targets: [fast, a/two/us]}
teams:
""" + "".join(
    f'  {name}: {{keys: ["{digest_of(name)}"], models: [{", ".join(f"{each!r}" for each in allowed)}], '
    f"routes: {{own-{name}: a/two/eu}}}}\n"
    for name, allowed in ALLOWED.items()
)
OWN = {f"own-{team}": {"a/two/eu"} for team in ALLOWED}
GIVES: Mapping[str, set[str]] = {
    **OWN,
    "a/one": {"a/one/default"},
    "a/one/default": {"a/one/default"},
    "a/one/more": {"a/one/more/default"},
    "a/one/more/default": {"a/one/more/default"},
    "a/onerous": {"a/onerous/default"},
    "a/two": {"a/two/eu", "a/two/us"},
    "a/two/eu": {"a/two/eu"},
    "a/two/us": {"a/two/us"},
    "b/one": {"b/one/default"},
    "w/x": {"w/x/x", "w/x/y"},
    "w/x/y": {"w/x/y"},
    "w/secret": {"w/secret/x", "w/secret/y"},
    "fireworks/m": {"fireworks/m/default"},
    "fast": {"a/one/default", "b/one/default"},
    "hidden": {"a/two/eu", "a/two/us", "w/secret/x", "w/secret/y"},
    "outer": {"a/one/default", "b/one/default", "a/two/us"},
}
"""Each name with every deployment that it may lead to, including fallbacks."""
MISSES = (
    "a/three",
    "a/two/asia",
    "one",
    "a",
    "",
    "*",
    "a/*",
    "a/one/",
    "fast/a/one",
    "OWN",
    "m",
    "nothing",
    "a/one/more/x",
)


@dataclass(frozen=True, slots=True)
class Case:
    """A request of a team for a name on a surface."""

    team: str
    name: str
    surface: str


def granted(team: str, name: str) -> bool:
    """Return whether the configuration grants a name, by an independent reading: a pattern matches the name, or the
    model whose deployment it is."""
    if name in OWN:
        return name == f"own-{team}"
    model = next((each for each in ("a/one/more", "a/one", "w/x") if name.startswith(f"{each}/")), name)
    model = name if name in ("a/one/more", "a/two/eu", "a/two/us") else model
    names = {name, model, *({"a/two"} if name.startswith("a/two/") else ())}
    for pattern in ALLOWED[team]:
        if pattern == "*" or pattern in names or (pattern[-2:] == "/*" and name.startswith(pattern[:-1])):
            return True
    return False


def cases() -> Iterator[Case]:
    """Yield every team with every name on every surface."""
    for team in ALLOWED:
        for name in (*GIVES, *MISSES):
            yield from (Case(team, name, row.name) for row in SURFACES)


@pytest.fixture(scope="module")
def table() -> Snapshot:
    return snapshot(TABLE)


class Drawn(Idle):
    def __init__(self, draw: float) -> None:
        self._drawn = draw

    @override
    def draw(self) -> float:
        return self._drawn


def reached(table: Snapshot, case: Case, draw: float) -> set[str] | None:
    """Return the deployments that a request would reach. Return `None` if it is refused."""
    try:
        planned = plan_for(table, table.teams[case.team], case.name, case.surface, Drawn(draw))
    except GatewayError as error:
        return None if error.facts.status in (403, 404) else {f"refused with {error.facts.status}"}
    return {target.name for target in planned.targets}


@looped("draw", [0.0, 0.5, 0.999])
def test_every_team_reaches_what_it_was_granted_and_nothing_else(table: Snapshot, draw: float) -> None:
    asked = 0
    for case in cases():
        asked += 1
        expected = GIVES.get(case.name) if granted(case.team, case.name) else None
        if case.name == "m" and case.surface == "fireworks" and granted(case.team, "fireworks/m"):
            expected = GIVES["fireworks/m"]  # the default vendor of this surface
        assert reached(table, case, draw) == expected, case
    assert asked == len(ALLOWED) * (len(GIVES) + len(MISSES)) * len(SURFACES)


@looped("team", ALLOWED)
def test_no_team_is_shown_a_name_that_it_was_not_granted(table: Snapshot, team: str) -> None:
    who: Team = table.teams[team]
    shown = set(visible(table, who))
    assert {name for name in shown if not granted(team, name)} == set()
    assert shown >= {name for name in ALLOWED[team] if "*" not in name and name != "w/x"}
    for name in (*GIVES, *MISSES):
        assert set(nearest(table, who, f"{name}x")) <= shown


def test_a_target_carries_its_own_vendor_s_credential_wherever_it_came_from(table: Snapshot) -> None:
    targets: list[Target] = list(table.targets())
    for target in targets:
        assert (target.credential.key is not None) is (target.vendor == "fireworks")
