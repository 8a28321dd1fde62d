"""Profiles combined with the facts about a model."""

from providers.models.facts import NO_FACTS, ModelFacts
from providers.models.fit_profile import profile_for_model, with_facts
from providers.profiles.load_profiles import load_profiles
from providers.unified_request import Operation

PROFILES = load_profiles()


def test_a_profile_stays_where_nothing_is_known_of_the_model() -> None:
    assert with_facts(PROFILES["openai"], NO_FACTS) is PROFILES["openai"]


def test_facts_take_fields_away_and_bound_them() -> None:
    facts = ModelFacts(bounds={"temperature": (1, 1)}, refuses=frozenset({"top_p"}), forced_choice=False)
    made = with_facts(PROFILES["together"], facts)
    assert tuple(made.bounds["temperature"]) == (1, 1)
    assert "top_p" not in made.wires[Operation.CHAT].accepts
    assert made.tool_choices == {"auto", "none"}
    assert "top_p" in PROFILES["together"].wires[Operation.CHAT].accepts


def test_an_id_of_nine_characters_replaces_the_vendors_own_limit() -> None:
    hooks = with_facts(PROFILES["openrouter"], ModelFacts(nine_character_ids=True)).hooks
    assert hooks == ("nine_character_call_ids",)


def test_words_of_a_model_stand_where_the_vendor_has_no_field_or_form_of_its_own() -> None:
    facts = ModelFacts(words={"none": "low", "xhigh": "high"}, nearest=frozenset({"none"}))
    together = with_facts(PROFILES["together"], facts).words["reasoning_effort"]
    assert (together["none"], together["xhigh"]) == ({"reasoning": {"enabled": False}}, "high")
    assert "reasoning_effort" not in with_facts(PROFILES["openrouter"], facts).words
    assert profile_for_model(PROFILES["cerebras"], "gpt-oss-120b", "x").nearest == {
        "reasoning_effort": frozenset({"none"})
    }
