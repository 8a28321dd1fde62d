"""A profile: the values that the operator must configure, and the models that take raw prompts."""

from providers.profiles.load_profiles import load_profiles, parse_profiles


def test_addresses_name_what_the_operator_must_fill_in() -> None:
    assert load_profiles()["azure"].placeholders == ("resource",)
    assert load_profiles()["pais"].placeholders == ("fqdn",)
    assert load_profiles()["openai"].placeholders == ()
    assert load_profiles()["openai_compatible"].base_url is None


def test_raw_prompts_are_for_all_models_for_none_or_for_those_that_match() -> None:
    rows = parse_profiles(
        "all: {}\nnone: {raw_prompts: chat}\nsome: {raw_prompts: '^base'}\nonly: {paths: {chat: null}}"
    )
    takes = {name: (row.takes_raw_prompts("base"), row.chats("base"), row.chats("x")) for name, row in rows.items()}
    assert takes == {
        "all": (True, True, True),
        "none": (False, True, True),
        "some": (True, False, True),
        "only": (True, False, False),
    }
    assert not rows["some"].takes_raw_prompts("x")


def test_a_tool_is_taken_by_the_pattern_of_its_whole_type() -> None:
    row = parse_profiles("a: {tool_types: ['own:.*', search]}")["a"]
    taken = {kind: row.takes_tool(kind) for kind in ("function", "own:x", "search", "search_2", "custom", None)}
    assert taken == {"function": True, "own:x": True, "search": True, "search_2": False, "custom": False, None: False}
