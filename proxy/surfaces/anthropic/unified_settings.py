"""Converts settings of the Messages API to the unified fields: reasoning, effort, formats, identity, and fields that
only Anthropic has.

For a vendor without such settings, the settings for the amount of reasoning may be dropped in translation, and are then
reported as left out. They are not refused, because Claude Code sends them with every request, for every model.

Sources: `anthropic` 2.12.0 type `MessageCreateParams` and its beta form; Claude Code 2.1.197, November 2026.
"""

import re
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Final

from providers.json_types import JsonValue
from providers.unified_request import DISPLAY
from proxy.surfaces.anthropic.translation import Translation
from proxy.surfaces.request.rule_kinds import check_at, integer, json_object, one_of, string, text

EFFORT, THINKING = "reasoning_effort", "thinking"

_BUDGETS = ((2048, "low"), (10_000, "medium"), (16_384, "high"), (32_768, "xhigh"))
"""The largest budget of reasoning tokens for each word of effort. The last word also stands for every larger budget."""

_ADAPTIVE_EFFORT = "medium"
"""The effort if the model adapts its reasoning by itself and the request names no effort. Claude's own default is
higher."""

_EMPTY: tuple[JsonValue, ...] = (False, "", [], {})

_OLDER_USER_ID: Final = re.compile(r"(user_[0-9a-f]{64}_account_[0-9a-f-]{0,36})_session_[0-9A-Za-z-]{8,64}")
_NEWER_USER_ID: Final = re.compile(
    r"""(\{[^{}\\]*?)(?:, ?"session_id": ?"[^"\\]{1,128}"|"session_id": ?"[^"\\]{1,128}", ?)(.*\})"""
)
"""The `user_id` of Claude Code, which also contains the session: `user_HASH_account_UUID_session_UUID`, since 2.1 a
JSON object with a `session_id`."""

_MAX_SEARCHED_CHARS: Final = 1024
"""The most characters of a `user_id` that is searched for a session: the time of the search grows with the square of
the length."""

_tier = one_of("auto", "standard_only")
_limit = integer(0)
_budget = integer(1)


def put_limit(draft: Translation, value: JsonValue) -> None:
    """Read `max_tokens`. A limit of 0 fills the vendor's cache and requests no response. Raises Invalid."""
    draft.chat["max_tokens"] = limit = _limit(value)
    if limit == 0:
        draft.bind("max_tokens", "a limit of 0")


def put_stops(draft: Translation, value: JsonValue) -> None:
    """Read `stop_sequences`. The field of the unified request has the same name."""
    draft.chat["stop_sequences"] = value


def put_thinking(draft: Translation, value: JsonValue) -> None:
    """Read `thinking`. The effort in `output_config` is read after it. Raises Invalid."""
    thinking = json_object(value)
    if (display := thinking.get("display")) is not None:
        draft.leave_out(DISPLAY)
        draft.display = display if isinstance(display, str) else None
    match check_at(text, thinking.get("type"), "type"):
        case "disabled":
            draft.chat[THINKING] = {"type": "disabled"}
            draft.instead[THINKING] = {EFFORT: "none"}
        case "enabled":
            tokens = check_at(_budget, thinking.get("budget_tokens"), "budget_tokens")
            draft.chat[THINKING] = {"type": "enabled", "budget_tokens": tokens}
            draft.instead[THINKING] = {EFFORT: next((word for most, word in _BUDGETS if tokens <= most), "xhigh")}
        case "adaptive" | "between_tools":
            draft.chat[EFFORT] = _ADAPTIVE_EFFORT
            draft.unsaid.add(EFFORT)
        case kind:
            draft.bind("thinking", f"the type '{kind[:64]}'")
            return
    draft.instead.setdefault(EFFORT, {})


def put_output(draft: Translation, value: JsonValue) -> None:
    """Read `output_config`: effort, and the format of the response. Raises Invalid."""
    for name, setting in json_object(value).items():
        if setting is None:
            continue
        match name:
            case "effort":
                _effort(draft, check_at(text, setting, name))
            case "format":
                put_format(draft, setting)
            case _:
                draft.bind(f"output_config.{name[:64]}")


def _effort(draft: Translation, word: str) -> None:
    given = draft.chat.get(THINKING)
    if given is None:
        draft.chat[EFFORT] = word
        draft.unsaid.discard(EFFORT)
        draft.instead.setdefault(EFFORT, {})
    elif given != {"type": "disabled"}:
        draft.instead[THINKING] = {EFFORT: word}


def put_format(draft: Translation, value: JsonValue) -> None:
    """Read the format of the response, which may also have the older name `output_format`. Raises Invalid."""
    form = json_object(value)
    if form.get("type") != "json_schema":
        draft.bind("output_config.format", f"the type '{str(form.get('type'))[:64]}'")
        return
    schema = check_at(json_object, form.get("schema"), "schema")
    draft.chat["response_format"] = {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": schema, "strict": True},
    }


def put_metadata(draft: Translation, value: JsonValue) -> None:
    """Read `metadata`. Vendors receive the user's id as a digest, because clients put names of devices and accounts
    into it. Claude Code's session is removed first, because a user has many sessions. Raises Invalid."""
    metadata = json_object(value)
    user = metadata.get("user_id")
    if user is not None and (given := check_at(string, user, "user_id")):
        draft.chat["user"] = blake2b(_without_session(given).encode(errors="replace"), digest_size=16).hexdigest()
    if any(name != "user_id" and setting is not None for name, setting in metadata.items()):
        draft.leave_out("metadata")


def _without_session(user: str) -> str:
    """Return a user's id without the session that Claude Code adds to it; any other id unchanged."""
    if (older := _OLDER_USER_ID.fullmatch(user)) is not None:
        return older[1]
    newer = _NEWER_USER_ID.fullmatch(user) if user.startswith("{") and len(user) <= _MAX_SEARCHED_CHARS else None
    return user if newer is None else newer[1] + newer[2]


def put_tier(draft: Translation, value: JsonValue) -> None:
    """Read `service_tier`. Raises Invalid."""
    draft.chat["service_tier"] = "default" if _tier(value) == "standard_only" else "auto"


def put_context_management(draft: Translation, value: JsonValue) -> None:
    """Read `context_management`. Edits that clear only thinking blocks are left out. Raises Invalid."""
    for name, setting in json_object(value).items():
        if name != "edits":
            if setting not in (None, *_EMPTY):
                draft.bind("context_management")
            continue
        edits = setting if isinstance(setting, list) else [setting]
        for edit in edits:
            kind = edit.get("type") if isinstance(edit, dict) else None
            if not isinstance(kind, str) or not kind.startswith("clear_thinking_"):
                draft.bind("context_management")
                return
        if edits:
            draft.leave_out("context_management")


def put_marker(draft: Translation, value: JsonValue) -> None:
    """Note the cache marker of the whole request, which has no effect on the response. Raises Invalid."""
    json_object(value)
    draft.leave_out("cache_control")


def anthropic_only(name: str, *neutral: JsonValue) -> Callable[[Translation, JsonValue], None]:
    """Return the reader of a field that only Anthropic honours. A value without an effect, or an empty value, is
    ignored."""

    def put(draft: Translation, value: JsonValue) -> None:
        if value not in (*neutral, *_EMPTY):
            draft.bind(name)

    return put


def leave_out_fallbacks(draft: Translation, value: JsonValue) -> None:
    """Leave out the models that the client names as fallbacks, for every vendor, because the configuration decides
    which models a team may use. An empty list has no effect."""
    if value not in _EMPTY:
        draft.leave_out_everywhere("fallbacks")


ANTHROPIC_ONLY: Mapping[str, tuple[JsonValue, ...]] = {
    "speed": ("standard",),
    "inference_geo": ("global",),
    "container": (),
    "mcp_servers": (),
    "compaction": (),
    "thread": (),
    "diagnostics": (),
    "billing_policy": (),
}
"""Fields that only Anthropic honours, with their values that have no effect."""
