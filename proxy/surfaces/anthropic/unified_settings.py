"""Settings of the Messages API in the unified fields: thinking, effort, formats, identity, and what only Anthropic has.

How much a model thinks may give way in translation, where a vendor cannot say it: the API's command-line client sends
it with every request, whatever the model. It is named as left out then.

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
"""The most tokens of thinking that each word of effort stands for; a larger budget is the last word."""

_USUAL = "medium"
"""The effort of thinking that the model adapts by itself, where none is named. Claude's own is higher."""

_EMPTY: tuple[JsonValue, ...] = (False, "", [], {})

_OLDER: Final = re.compile(r"(user_[0-9a-f]{64}_account_[0-9a-f-]{0,36})_session_[0-9A-Za-z-]{8,64}")
_NEWER: Final = re.compile(
    r"""(\{[^{}\\]*?)(?:, ?"session_id": ?"[^"\\]{1,128}"|"session_id": ?"[^"\\]{1,128}", ?)(.*\})"""
)
"""The `user_id` of Claude Code, which names the session too: `user_HASH_account_UUID_session_UUID`, since 2.1 a JSON
object with a `session_id`."""

_LONGEST: Final = 1024
"""Characters of a `user_id` that may have a session: a search takes time that grows with the square of its length."""

_tier = one_of("auto", "standard_only")
_limit = integer(0)
_budget = integer(1)


def put_limit(made: Translation, value: JsonValue) -> None:
    """Read `max_tokens`; 0 fills the vendor's cache and asks for no answer. Raises Invalid."""
    made.chat["max_tokens"] = limit = _limit(value)
    if limit == 0:
        made.bind("max_tokens", "a limit of 0")


def put_stops(made: Translation, value: JsonValue) -> None:
    """Read `stop_sequences`, which the unified request knows by that name too."""
    made.chat["stop_sequences"] = value


def put_thinking(made: Translation, value: JsonValue) -> None:
    """Read `thinking`; what `output_config` says of effort is read after it. Raises Invalid."""
    thinking = json_object(value)
    if (display := thinking.get("display")) is not None:
        made.leave_out(DISPLAY)
        made.display = display if isinstance(display, str) else None
    match check_at(text, thinking.get("type"), "type"):
        case "disabled":
            made.chat[THINKING] = {"type": "disabled"}
            made.instead[THINKING] = {EFFORT: "none"}
        case "enabled":
            tokens = check_at(_budget, thinking.get("budget_tokens"), "budget_tokens")
            made.chat[THINKING] = {"type": "enabled", "budget_tokens": tokens}
            made.instead[THINKING] = {EFFORT: next((word for most, word in _BUDGETS if tokens <= most), "xhigh")}
        case "adaptive" | "between_tools":
            made.chat[EFFORT] = _USUAL
            made.unsaid.add(EFFORT)
        case kind:
            made.bind("thinking", f"the type '{kind[:64]}'")
            return
    made.instead.setdefault(EFFORT, {})


def put_output(made: Translation, value: JsonValue) -> None:
    """Read `output_config`: effort, and the format of the answer. Raises Invalid."""
    for name, member in json_object(value).items():
        if member is None:
            continue
        match name:
            case "effort":
                _effort(made, check_at(text, member, name))
            case "format":
                put_format(made, member)
            case _:
                made.bind(f"output_config.{name[:64]}")


def _effort(made: Translation, word: str) -> None:
    given = made.chat.get(THINKING)
    if given is None:
        made.chat[EFFORT] = word
        made.unsaid.discard(EFFORT)
        made.instead.setdefault(EFFORT, {})
    elif given != {"type": "disabled"}:
        made.instead[THINKING] = {EFFORT: word}


def put_format(made: Translation, value: JsonValue) -> None:
    """Read a format, which the older name `output_format` has too. Raises Invalid."""
    form = json_object(value)
    if form.get("type") != "json_schema":
        made.bind("output_config.format", f"the type '{str(form.get('type'))[:64]}'")
        return
    schema = check_at(json_object, form.get("schema"), "schema")
    made.chat["response_format"] = {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": schema, "strict": True},
    }


def put_metadata(made: Translation, value: JsonValue) -> None:
    """Read `metadata`: the user's id goes on as a digest, since clients put names of devices and accounts into it, and
    without Claude Code's session, since a user has many. Raises Invalid."""
    metadata = json_object(value)
    user = metadata.get("user_id")
    if user is not None and (given := check_at(string, user, "user_id")):
        made.chat["user"] = blake2b(_lasting(given).encode(errors="replace"), digest_size=16).hexdigest()
    if any(name != "user_id" and member is not None for name, member in metadata.items()):
        made.leave_out("metadata")


def _lasting(user: str) -> str:
    """Return a user's id without the session that Claude Code adds to it; another id as it is."""
    if (older := _OLDER.fullmatch(user)) is not None:
        return older[1]
    newer = _NEWER.fullmatch(user) if user.startswith("{") and len(user) <= _LONGEST else None
    return user if newer is None else newer[1] + newer[2]


def put_tier(made: Translation, value: JsonValue) -> None:
    """Read `service_tier`. Raises Invalid."""
    made.chat["service_tier"] = "default" if _tier(value) == "standard_only" else "auto"


def put_context_management(made: Translation, value: JsonValue) -> None:
    """Read `context_management`: edits that clear nothing but thinking are left out. Raises Invalid."""
    for name, member in json_object(value).items():
        if name != "edits":
            if member not in (None, *_EMPTY):
                made.bind("context_management")
            continue
        edits = member if isinstance(member, list) else [member]
        for edit in edits:
            kind = edit.get("type") if isinstance(edit, dict) else None
            if not isinstance(kind, str) or not kind.startswith("clear_thinking_"):
                made.bind("context_management")
                return
        if edits:
            made.leave_out("context_management")


def put_marker(made: Translation, value: JsonValue) -> None:
    """Note the cache marker of the whole request, which promises nothing. Raises Invalid."""
    json_object(value)
    made.leave_out("cache_control")


def only_here(name: str, *neutral: JsonValue) -> Callable[[Translation, JsonValue], None]:
    """Return the reader of a member that only Anthropic honours; a neutral or empty value asks for nothing."""

    def put(made: Translation, value: JsonValue) -> None:
        if value not in (*neutral, *_EMPTY):
            made.bind(name)

    return put


def leave_out_fallbacks(made: Translation, value: JsonValue) -> None:
    """Leave out other models beside the one that was resolved, at each vendor: the configuration decides which ones a
    team may use. An empty list names none."""
    if value not in _EMPTY:
        made.leave_out_everywhere("fallbacks")


ONLY_ANTHROPICS: Mapping[str, tuple[JsonValue, ...]] = {
    "speed": ("standard",),
    "inference_geo": ("global",),
    "container": (),
    "mcp_servers": (),
    "compaction": (),
    "thread": (),
    "diagnostics": (),
    "billing_policy": (),
}
"""Members that only Anthropic honours, with their values that ask for nothing."""
