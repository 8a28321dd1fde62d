"""The dialects by name: every packaged row finds its own."""

from providers.dialects.registry import DIALECTS
from providers.profiles.load_profiles import load_profiles


def test_every_profile_speaks_a_dialect_that_exists() -> None:
    assert {profile.dialect for profile in load_profiles().values()} == set(DIALECTS)
