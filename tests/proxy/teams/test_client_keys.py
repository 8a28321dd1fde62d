"""The owner of a key, in each header that may carry it, and the fields that its team may pass through."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from providers.json_types import JsonValue
from providers.unified_request import Operation, TextPrompt, UnifiedRequest
from proxy.errors import GatewayError, conflicting_keys, invalid_key
from proxy.routing.snapshot import ANYONE, NO_KEY, Team
from proxy.surfaces.registry import SURFACES
from proxy.surfaces.surface import Surface
from proxy.teams.client_keys import (
    MAX_KEY_LENGTH,
    ExpiredKey,
    WrongKey,
    identify,
    missing_key,
    permit_extras,
    presented_key,
    recognize,
)
from tests.proxy.kit.tables import digest_of, snapshot
from tests.support.looped import looped

ORDER = ("authorization", "x-api-key", "api-key")
TABLE = snapshot(
    f"""
vendors: {{mock: {{}}}}
models: {{mock/echo: {{}}}}
teams:
  search: {{keys: ["{digest_of("key-one")}", "{digest_of("key-two")}"], models: ["*"]}}
  ads: {{keys: ["{digest_of("key-three")}"], models: ["*"]}}
  brief: {{keys: [{{key: "{digest_of("key-four")}", name: ci, not_after: 2026-12-31T00:00:00Z}}], models: ["*"]}}
"""
)
MISSING, INCORRECT = missing_key().facts.message, invalid_key().facts.message
CONFLICTS = {conflicting_keys(name).facts.message for name in ORDER}
NOW = 1_790_000_000.0
END_OF_FOUR = 1_798_675_200.0
OPEN = snapshot("vendors: {mock: {}}\nmodels: {mock/echo: {}}")


def headers(**given: str) -> CIMultiDict[str]:
    """Return headers as the server has them; underscores stand for hyphens."""
    return CIMultiDict({name.replace("_", "-"): value for name, value in given.items()})


@looped(
    ("given", "expected"),
    [
        ({"Authorization": "Bearer k"}, "k"),
        ({"Authorization": "bearer   k "}, "k"),
        ({"Authorization": "BEARER k"}, "k"),
        ({"Authorization": "k"}, "k"),
        ({"X-Api-Key": "k"}, "k"),
        ({"Api-Key": "k"}, "k"),
        ({"Authorization": "Bearer k", "X-Api-Key": "k", "Api-Key": "k"}, "k"),
        ({"Authorization": "", "X-Api-Key": "b"}, "b"),
        ({"Authorization": "Bearer ", "X-Api-Key": "b"}, "b"),
        ({"Authorization": "Bearer", "Api-Key": "b"}, "b"),
        ({}, None),
        ({"Cookie": "k"}, None),
    ],
)
def test_the_first_header_of_the_surface_that_holds_a_key_gives_it(given: dict[str, str], expected: str | None) -> None:
    assert presented_key(CIMultiDict(given), ORDER) == expected


@pytest.mark.parametrize(("order", "key"), [(ORDER, "one"), (ORDER[::-1], "two")])
def test_of_different_headers_the_first_of_the_surface_counts(order: tuple[str, ...], key: str) -> None:
    given = CIMultiDict({"Authorization": "Bearer one", "X-Api-Key": "two", "Api-Key": "two"})
    assert presented_key(given, order) == key


@looped("name", ORDER)
def test_one_header_with_two_keys_is_refused_by_its_name_and_without_either(name: str) -> None:
    given = CIMultiDict([(name, "one-key"), (name.title(), "other-key")])
    with pytest.raises(GatewayError) as caught:
        identify(TABLE, given, ORDER, NOW)
    facts = caught.value.facts
    assert (facts.status, facts.code) == (400, "conflicting_parameters")
    assert f"'{name}'" in facts.message
    assert "one-key" not in facts.message
    assert "other-key" not in facts.message


@pytest.mark.parametrize(
    "given", [[("X-Api-Key", "one"), ("X-Api-Key", "one")], [("X-Api-Key", "one"), ("Api-Key", "")]]
)
def test_the_same_key_twice_is_one_key(given: list[tuple[str, str]]) -> None:
    assert presented_key(CIMultiDict(given), ORDER) == "one"


@looped(("key", "team"), [("key-one", "search"), ("key-two", "search"), ("key-three", "ads")])
@looped("header", ["authorization", "x_api_key", "api_key"])
def test_a_key_is_its_team_s_in_every_header(key: str, team: str, header: str) -> None:
    assert identify(TABLE, headers(**{header: key}), ORDER, NOW).team.name == team


@looped(
    "key",
    ["wrong", "KEY-ONE", "key-one ey", digest_of("key-one"), "k" * (MAX_KEY_LENGTH + 1), "schlüssel", "\udcff", " "],
)
def test_any_other_key_is_refused(key: str) -> None:
    with pytest.raises(WrongKey if key.strip() else GatewayError) as caught:
        identify(TABLE, headers(authorization=f"Bearer {key}"), ORDER, NOW)
    facts = caught.value.facts
    assert (facts.status, facts.code, facts.headers) == (401, "invalid_api_key", {"x-should-retry": "false"})
    assert key.strip() == "" or key not in facts.message


def test_a_key_is_its_team_s_until_it_ends_and_then_told_so_and_no_guess() -> None:
    given = headers(authorization="Bearer key-four")
    assert identify(TABLE, given, ORDER, END_OF_FOUR - 0.001).team.name == "brief"
    with pytest.raises(ExpiredKey) as ended:
        identify(TABLE, given, ORDER, END_OF_FOUR)
    facts = ended.value.facts
    assert (facts.status, facts.code, facts.headers) == (401, "invalid_api_key", {"x-should-retry": "false"})
    assert facts.message == "This API key expired on 2026-12-31 00:00:00 UTC."
    assert (ended.value.key.team.name, ended.value.key.name, ended.value.logged) == ("brief", "ci", "expired_api_key")
    assert not isinstance(ended.value, WrongKey)


@looped(("key", "found"), [("key-one", ("search", "")), ("key-four", ("brief", "ci")), ("wrong", None), ("", None)])
def test_who_asks_in_vain_is_known_where_the_key_is(key: str, found: tuple[str, str] | None) -> None:
    known = recognize(TABLE, headers(authorization=f"Bearer {key}"), ORDER, NOW)
    assert (None if known is None else (known.team.name, known.name)) == found


def test_who_asks_in_vain_is_nobody_with_two_keys_or_one_that_has_ended() -> None:
    two = CIMultiDict([("X-Api-Key", "key-one"), ("X-Api-Key", "key-two")])
    assert recognize(TABLE, two, ORDER, NOW) is None
    assert recognize(TABLE, headers(authorization="Bearer key-four"), ORDER, END_OF_FOUR) is None
    assert recognize(OPEN, headers(), ORDER, NOW) == NO_KEY


def test_no_key_is_refused_where_there_are_teams() -> None:
    with pytest.raises(GatewayError) as caught:
        identify(TABLE, headers(), ORDER, NOW)
    assert caught.value.facts.status == 401
    assert not isinstance(caught.value, WrongKey)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["Authorization", "X-Api-Key", "Api-Key"]),
            st.text(st.characters(codec="latin-1"), max_size=600),
        ),
        max_size=4,
    )
)
def test_no_header_is_more_than_refused_and_none_is_repeated(given: list[tuple[str, str]]) -> None:
    with pytest.raises(GatewayError) as caught:
        identify(TABLE, CIMultiDict(given), ORDER, NOW)
    assert caught.value.facts.status in (400, 401)
    assert caught.value.facts.message in {MISSING, INCORRECT, *CONFLICTS}


@pytest.mark.parametrize("given", [{}, {"authorization": "Bearer whatever"}])
def test_without_teams_anybody_is_let_in(given: dict[str, str]) -> None:
    assert identify(OPEN, headers(**given), ORDER, NOW).team is ANYONE


REQUEST = UnifiedRequest(Operation.COMPLETIONS, "mock/echo", TextPrompt(("a",)), {})
PARAMS: Mapping[str, JsonValue] = {"top_a": 0.1}
EVERYTHING = replace(REQUEST, extra_params=PARAMS, extra_headers={"x-trace": "1"}, unknown={"top_b": 1, "top_c": None})
NO_PARAMS, NO_HEADERS = replace(ANYONE, extra_params=False), replace(ANYONE, extra_headers=False)
NOTHING = replace(ANYONE, extra_params=False, extra_headers=False)


def refused_fields(team: Team, request: UnifiedRequest) -> list[str | None]:
    """Return the fields for which a team's request is refused."""
    with pytest.raises(GatewayError) as caught:
        permit_extras(team, request)
    assert all(problem.code == "unsupported_parameter" for problem in caught.value.facts.problems)
    return [problem.param for problem in caught.value.facts.problems]


def test_a_team_hands_on_what_it_likes_unless_that_is_switched_off() -> None:
    permit_extras(ANYONE, EVERYTHING)


def test_what_is_switched_off_is_refused_by_name_all_of_it_at_once() -> None:
    assert refused_fields(NO_HEADERS, EVERYTHING) == ["inference_extra_headers"]
    assert refused_fields(NO_PARAMS, EVERYTHING) == ["inference_extra_params", "top_b", "top_c"]
    assert refused_fields(NOTHING, EVERYTHING) == [
        "inference_extra_params",
        "top_b",
        "top_c",
        "inference_extra_headers",
    ]


def test_unknown_fields_are_no_way_around_the_switch() -> None:
    assert refused_fields(NO_PARAMS, replace(REQUEST, unknown={"top_b": 1})) == ["top_b"]


@looped("asked", [REQUEST, replace(REQUEST, extra_params={}, extra_headers={}), replace(REQUEST, unknown={})])
def test_a_request_that_hands_on_nothing_passes_every_team(asked: UnifiedRequest) -> None:
    permit_extras(NOTHING, asked)


@looped("surface", SURFACES, ids=lambda surface: surface.name)
def test_the_refusal_is_a_fault_of_the_body_on_every_surface(surface: Surface) -> None:
    with pytest.raises(GatewayError) as caught:
        permit_extras(NO_HEADERS, EVERYTHING)
    status, body = surface.error(caught.value.facts)
    assert status == (422 if surface.name in ("scale", "pais") else 400)
    assert b"'inference_extra_headers' is switched off for this team." in body


def test_a_missing_key_and_an_incorrect_one_are_told_apart() -> None:
    with pytest.raises(GatewayError) as missing:
        identify(TABLE, headers(), ORDER, NOW)
    with pytest.raises(WrongKey) as wrong:
        identify(TABLE, headers(x_api_key="key-nine"), ORDER, NOW)
    assert missing.value.facts.message.startswith("Missing API key.")
    assert wrong.value.facts.message.startswith("Incorrect API key")
    assert (missing.value.logged, wrong.value.logged) == ("missing_api_key", "invalid_api_key")
    assert missing.value.facts.code == wrong.value.facts.code == "invalid_api_key"
