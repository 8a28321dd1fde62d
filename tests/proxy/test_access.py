"""Whose key it is, in whichever header it comes."""

import pytest
from multidict import CIMultiDict

from proxy.access import MAX_KEY, identify, presented_key
from proxy.errors import GatewayError
from proxy.snapshot import ANYONE
from tests.proxy.tables import digest_of, snapshot

ORDER = ("authorization", "x-api-key", "api-key")
TABLE = snapshot(
    f"""
vendors: {{mock: {{}}}}
models: {{mock/echo: {{}}}}
teams:
  search: {{keys: ["{digest_of("key-one")}", "{digest_of("key-two")}"], models: ["*"]}}
  ads: {{keys: ["{digest_of("key-three")}"], models: ["*"]}}
"""
)
OPEN = snapshot("vendors: {mock: {}}\nmodels: {mock/echo: {}}")


def headers(**given: str) -> CIMultiDict[str]:
    """Headers as the server has them; underscores stand for hyphens."""
    return CIMultiDict({name.replace("_", "-"): value for name, value in given.items()})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"Authorization": "Bearer k"}, "k"),
        ({"Authorization": "bearer   k "}, "k"),
        ({"Authorization": "BEARER k"}, "k"),
        ({"Authorization": "k"}, "k"),
        ({"X-Api-Key": "k"}, "k"),
        ({"Api-Key": "k"}, "k"),
        ({"Authorization": "Bearer a", "X-Api-Key": "b"}, "a"),
        ({"Authorization": "", "X-Api-Key": "b"}, "b"),
        ({"Authorization": "Bearer ", "X-Api-Key": "b"}, "b"),
        ({"Authorization": "Bearer", "Api-Key": "b"}, "b"),
        ({}, None),
        ({"Cookie": "k"}, None),
    ],
)
def test_the_first_header_of_the_surface_that_holds_a_key_gives_it(given: dict[str, str], expected: str | None) -> None:
    assert presented_key(CIMultiDict(given), ORDER) == expected


def test_another_surface_looks_in_another_order() -> None:
    both = headers(authorization="Bearer a", x_api_key="b")
    assert presented_key(both, ("x-api-key", "authorization")) == "b"


@pytest.mark.parametrize(("key", "team"), [("key-one", "search"), ("key-two", "search"), ("key-three", "ads")])
@pytest.mark.parametrize("header", ["authorization", "x_api_key", "api_key"])
def test_a_key_is_its_team_s_in_every_header(key: str, team: str, header: str) -> None:
    assert identify(TABLE, headers(**{header: key}), ORDER).name == team


@pytest.mark.parametrize(
    "key", ["wrong", "KEY-ONE", "key-one ey", digest_of("key-one"), "k" * (MAX_KEY + 1), "schlüssel", "\udcff", " "]
)
def test_any_other_key_is_refused(key: str) -> None:
    with pytest.raises(GatewayError) as caught:
        identify(TABLE, headers(authorization=f"Bearer {key}"), ORDER)
    facts = caught.value.facts
    assert (facts.status, facts.code, facts.headers) == (401, "invalid_api_key", {"x-should-retry": "false"})
    assert key.strip() == "" or key not in facts.message


def test_no_key_is_refused_where_there_are_teams() -> None:
    with pytest.raises(GatewayError) as caught:
        identify(TABLE, headers(), ORDER)
    assert caught.value.facts.status == 401


@pytest.mark.parametrize("given", [{}, {"authorization": "Bearer whatever"}])
def test_without_teams_anybody_is_let_in(given: dict[str, str]) -> None:
    assert identify(OPEN, headers(**given), ORDER) is ANYONE
