"""Settings in the unified fields, and settings that only Anthropic has."""

from providers.json_types import JsonObject, JsonValue
from providers.unified_request import TranslationLosses
from proxy.dispatch.plan_translated import plan_translated
from proxy.limits.limit import user_digest
from proxy.surfaces.anthropic.translation import Translation
from proxy.surfaces.anthropic.unified_settings import ANTHROPIC_ONLY, anthropic_only
from tests.providers.dialects.kit import target_of
from tests.proxy.surfaces.anthropic.kit import parse, refused
from tests.support.looped import looped

SCHEMA: JsonObject = {"type": "object", "properties": {}}


def losses(**fields: JsonValue) -> TranslationLosses:
    found = parse(**fields).losses
    return found or TranslationLosses({})


@looped(
    ("fields", "params", "instead"),
    [
        (
            {"thinking": {"type": "disabled"}},
            {"thinking": {"type": "disabled"}},
            {"thinking": {"reasoning_effort": "none"}, "reasoning_effort": {}},
        ),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 2048}},
            {"thinking": {"type": "enabled", "budget_tokens": 2048}},
            {"thinking": {"reasoning_effort": "low"}, "reasoning_effort": {}},
        ),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 31_999}},
            {"thinking": {"type": "enabled", "budget_tokens": 31_999}},
            {"thinking": {"reasoning_effort": "xhigh"}, "reasoning_effort": {}},
        ),
        ({"thinking": {"type": "adaptive"}}, {"reasoning_effort": "medium"}, {"reasoning_effort": {}}),
        (
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}},
            {"reasoning_effort": "max"},
            {"reasoning_effort": {}},
        ),
        ({"output_config": {"effort": "low"}}, {"reasoning_effort": "low"}, {"reasoning_effort": {}}),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 1024}, "output_config": {"effort": "high"}},
            {"thinking": {"type": "enabled", "budget_tokens": 1024}},
            {"thinking": {"reasoning_effort": "high"}, "reasoning_effort": {}},
        ),
        (
            {"thinking": {"type": "disabled"}, "output_config": {"effort": "high"}},
            {"thinking": {"type": "disabled"}},
            {"thinking": {"reasoning_effort": "none"}, "reasoning_effort": {}},
        ),
    ],
)
def test_how_much_to_think_may_give_way(fields: JsonObject, params: JsonObject, instead: JsonObject) -> None:
    request = parse(**fields)
    found = {name: value for name, value in request.params.items() if name in ("thinking", "reasoning_effort")}
    assert found == params
    assert request.losses is not None
    assert request.losses.instead == instead
    assert request.losses.binding == {}


def test_how_thinking_is_shown_is_named() -> None:
    assert losses(thinking={"type": "adaptive", "display": "omitted"}).left_out == ("thinking.display",)


def test_a_format_becomes_a_response_format() -> None:
    form: JsonObject = {"type": "json_schema", "schema": SCHEMA}
    meant = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True}}
    assert parse(output_config={"format": form}).params["response_format"] == meant
    assert parse(output_format=form).params["response_format"] == meant


def test_the_user_s_id_goes_on_as_a_digest() -> None:
    identity = '{"device_id":"d","account_uuid":"a","session_id":"s"}'
    request = parse(metadata={"user_id": identity})
    user = request.params["user"]
    assert len(user) == 32
    assert set(user) <= set("0123456789abcdef")
    assert parse(metadata={"user_id": identity}).params["user"] == user
    assert parse(metadata={"user_id": "another"}).params["user"] != user
    assert "user" not in parse(metadata={"user_id": ""}).params
    assert losses(metadata={"user_id": "x", "team": "y"}).left_out == ("metadata",)


UUIDS = ("0c8f2d51-7f3e-4c3b-9a55-2f6f0d3c9b10", "9d1b7a44-1c1f-4d0a-8f61-5b6d3a7e2c99")
HASHED = f"user_{'a1' * 32}_account_{UUIDS[0]}"


@looped(
    ("of_session", "user"),
    [
        (HASHED + "_session_{}", HASHED),
        (f"user_{'a1' * 32}_account__session_{{}}", f"user_{'a1' * 32}_account_"),
        ('{{"device_id":"d","account_uuid":"","session_id":"{}"}}', '{"device_id":"d","account_uuid":""}'),
        ('{{"session_id":"{}","device_id":"d"}}', '{"device_id":"d"}'),
        ('{{"device_id":"d", "session_id": "{}", "x":"y"}}', '{"device_id":"d", "x":"y"}'),
    ],
)
def test_sessions_of_one_user_of_claude_code_are_one_user(of_session: str, user: str) -> None:
    meant = user_digest(user)
    assert [parse(metadata={"user_id": of_session.format(each)}).params["user"] for each in UUIDS] == [meant, meant]


@looped(
    "name",
    [
        "bob_session_12345678",
        f"user_bob_account_{UUIDS[0]}_session_{UUIDS[1]}",
        '{"session_id":"s"}',
        '{"name":"\\"session_id\\":\\"s\\""}',
        '["session_id":"s"]',
        "{" * 100_000,
        '{"a":1,"session_id":' * 5_000,
        '{"a":1' + ', "session_id": "' * 5_000,
        '{"device_id":"' + "d" * 1000 + '","session_id":"s"}',
        f"user_{'a' * 100_000}_session_{UUIDS[0]}",
    ],
)
def test_other_names_are_users_as_they_are(name: str) -> None:
    assert parse(metadata={"user_id": name}).params["user"] == user_digest(name)


def test_tiers_have_the_unified_words() -> None:
    assert parse(service_tier="standard_only").params["service_tier"] == "default"
    assert parse(service_tier="auto").params["service_tier"] == "auto"


@looped("value", [{}, {"edits": []}, {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}])
def test_clearing_nothing_but_thinking_is_not_binding(value: JsonObject) -> None:
    assert losses(context_management=value).binding == {}
    assert losses(context_management=value).left_out == (("context_management",) if value.get("edits") else ())


@looped(
    "value",
    [
        {"edits": [{"type": "clear_tool_uses_20250919"}]},
        {"edits": [{"type": "clear_thinking_20251015"}, {"type": "clear_tool_uses_20250919"}]},
        {"edits": [1]},
        {"edits": {"type": "x"}},
        {"of_tomorrow": {"x": 1}},
    ],
)
def test_other_management_of_the_context_is_binding(value: JsonObject) -> None:
    assert losses(context_management=value).binding == {"context_management": "'context_management'"}


@looped("name", ANTHROPIC_ONLY)
def test_what_only_anthropic_has_is_binding_unless_it_asks_for_nothing(name: str) -> None:
    asked: JsonObject = {name: {"x": 1}}
    assert losses(**asked).binding == {name: f"'{name}'"}
    for nothing in (None, {}, [], *ANTHROPIC_ONLY[name]):
        assert parse(**{name: nothing}).losses is None


@looped(
    ("fields", "subject"),
    [
        ({"max_tokens": 0}, "'max_tokens' with a limit of 0"),
        ({"thinking": {"type": "of_tomorrow"}}, "'thinking' with the type 'of_tomorrow'"),
        ({"output_config": {"task_budget": {"total": 1}}}, "'output_config.task_budget'"),
        ({"output_format": {"type": "grammar"}}, "'output_config.format' with the type 'grammar'"),
    ],
)
def test_values_of_anthropic_s_own_are_binding(fields: JsonObject, subject: str) -> None:
    assert [*losses(**fields).binding.values()] == [subject]


def test_the_marker_of_the_whole_request_is_left_out_and_named() -> None:
    assert losses(cache_control={"type": "ephemeral"}).left_out == ("cache_control",)


@looped("value", ["default", [{"model": "claude-opus"}], {"mode": "default"}])
def test_other_models_are_left_out_at_each_vendor_and_named(value: JsonValue) -> None:
    made = parse(fallbacks=value)
    assert made.losses is not None
    assert (made.losses.left_out, made.losses.native_left_out) == (("fallbacks",), ("fallbacks",))
    for vendor, model in [("anthropic", "claude-opus-4-6"), ("openai", "gpt-4o")]:
        plan = plan_translated(made.losses, made, target_of(vendor, model))
        assert plan.dropped == ("fallbacks",)
        assert b"fallbacks" not in plan.calls[0].sent.body


def test_an_empty_list_of_other_models_is_not_named() -> None:
    made = parse(fallbacks=[])
    assert (made.losses, "fallbacks" in (made.native.body if made.native else {})) == (None, False)


def test_only_here_keeps_to_the_values_it_was_given() -> None:
    made = Translation()
    anthropic_only("speed", "standard")(made, "standard")
    assert made.binding == {}
    anthropic_only("speed", "standard")(made, "fast")
    assert made.binding == {"speed": "'speed'"}


@looped(
    ("fields", "param"),
    [
        ({"max_tokens": -1}, "max_tokens"),
        ({"max_tokens": "9"}, "max_tokens"),
        ({"thinking": "on"}, "thinking"),
        ({"thinking": {}}, "thinking.type"),
        ({"thinking": {"type": "enabled"}}, "thinking.budget_tokens"),
        ({"output_config": []}, "output_config"),
        ({"output_config": {"effort": 1}}, "output_config.effort"),
        ({"output_config": {"format": {"type": "json_schema"}}}, "output_config.schema"),
        ({"metadata": 1}, "metadata"),
        ({"metadata": {"user_id": 1}}, "metadata.user_id"),
        ({"service_tier": "flex"}, "service_tier"),
        ({"stop_sequences": "x"}, "stop_sequences"),
        ({"cache_control": "x"}, "cache_control"),
        ({"context_management": []}, "context_management"),
    ],
)
def test_settings_that_make_no_sense_are_refused_by_name(fields: JsonObject, param: str) -> None:
    assert refused(**fields).param == param
