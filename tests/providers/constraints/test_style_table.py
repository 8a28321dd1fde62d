"""Each style that profiles name has its schema rules if the vendor publishes some."""

from providers.constraints.schema_rules import AZURE, OPENAI, VLLM
from providers.constraints.style_table import STYLES
from providers.profiles.load_profiles import load_profiles
from providers.unified_request import Operation


def test_every_profile_names_a_style_of_the_table() -> None:
    assert {profile.structured for profile in load_profiles().values()} <= STYLES.keys()


def test_every_style_has_both_operations() -> None:
    assert all(set(endpoints) == {Operation.CHAT, Operation.COMPLETIONS} for endpoints in STYLES.values())


def test_vendors_with_published_rules_have_them() -> None:
    chat = {name: endpoints[Operation.CHAT].rules for name, endpoints in STYLES.items()}
    assert (chat["openai"], chat["azure"], chat["vllm_both"]) == (OPENAI, AZURE, VLLM)
