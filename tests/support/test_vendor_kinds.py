"""One vendor of each kind is tested with every change."""

from providers.profiles.load_profiles import load_profiles
from tests.support.vendor_kinds import kind_of, others_nightly


def test_the_first_of_each_kind_is_for_every_change_and_the_others_for_the_night() -> None:
    rows = others_nightly(["openai", "vllm", "mistral", "anthropic", "no profile", "groq"])
    assert [row for row in rows if isinstance(row, str)] == ["openai", "vllm", "mistral", "anthropic", "no profile"]


def test_every_dialect_is_tested_with_every_change() -> None:
    profiles = load_profiles()
    tested = [row for row in others_nightly(profiles) if isinstance(row, str)]
    assert {profiles[name].dialect for name in tested} == {profile.dialect for profile in profiles.values()}
    assert len(tested) == len({kind_of(profile) for profile in profiles.values()})
