"""The headers that clients may add: the built-in list, the configured patterns, and the headers that stay forbidden."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from providers.client_extras.extra_headers import ALLOWED, check_headers, covers_own, is_own
from providers.failure import Refusal
from providers.profile import Profile
from providers.profiles.load_profiles import load_profiles
from providers.target import Permits
from providers.vendor_credential import Credential
from tests.providers.dialects.openai.kit import target
from tests.providers.kit import refusal_of
from tests.support.looped import looped

TARGET = target("openai")


def allows(name: str, *patterns: str) -> bool:
    try:
        check_headers([name], replace(TARGET, permits=Permits(headers=patterns)))
    except Refusal:
        return False
    return True


def test_a_refusal_names_the_header_the_deployment_and_the_setting() -> None:
    refusal = refusal_of(check_headers, ["traceparent", "X-My-Header"], TARGET)
    assert (refusal.param, refusal.code) == ("inference_extra_headers.X-My-Header", "unsupported_parameter")
    assert TARGET.name in refusal.message
    assert "`allow_headers: [x-my-header]`" in refusal.message


@looped("profile", load_profiles().values(), ids=lambda profile: profile.name)
def test_no_profile_s_credential_can_be_allowed(profile: Profile) -> None:
    name = profile.auth.header.lower()
    assert is_own(name)
    assert not allows(name, name)


@looped("name", sorted(ALLOWED))
def test_a_listed_header_passes_in_any_case(name: str) -> None:
    assert name == name.lower()
    assert allows(name)
    assert allows(name.upper())
    assert not is_own(name)


def test_headers_that_the_table_sets_itself_are_told_and_not_refused() -> None:
    credential = Credential("bearer", "Authorization", SecretStr("k"), {"X-Org": SecretStr("acme")})
    assert check_headers(["x-ORG", "baggage"], replace(TARGET, credential=credential)) == ["x-ORG"]


def test_a_pattern_stands_for_all_that_begin_so_and_a_name_for_itself() -> None:
    assert allows("X-Team-Color", "x-team-*")
    assert allows("X-My-Header", "x-my-header")
    assert not allows("X-Team", "x-team-*")
    assert not allows("x-my-header-2", "x-my-header")
    assert not allows("x-anything")


@looped(
    ("pattern", "own"),
    [("host", True), ("content-*", True), ("x-auth-*", True), ("x-dragoman-*", True), ("x-forwarded-*", True),
     ("x-*", False), ("x-team-*", False), ("x-tenant-id", False), ("x-smg-routing-key", False)],
)  # fmt: skip
def test_a_pattern_of_nothing_but_own_headers_is_recognised(pattern: str, own: bool) -> None:
    assert covers_own(pattern) == own


@given(st.from_regex(r"[a-z0-9]{1,8}(-[a-z0-9]{1,8}){0,3}", fullmatch=True))
def test_no_pattern_lets_an_own_header_pass(name: str) -> None:
    assert allows(name, name, f"{name[:2]}*") == (not is_own(name))
