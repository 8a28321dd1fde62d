"""A check of request bodies by the rules of Anthropic's API, whose violation is a 400. The texts are the vendor's.

Sources: "Errors", "Extended thinking" and "Preserved thinking" pages, and messages quoted in public issue threads,
November 2026.
"""

from collections.abc import Iterator

from providers.json_types import JsonObject, JsonValue


class VendorRefusal(Exception):
    """A refusal of the API, with the message of its 400."""


def check_rules(body: JsonObject, signatures: frozenset[str], *, budgets: bool) -> None:
    """Raise VendorRefusal for a body that the API refuses. `signatures` are the signatures that the model has given.
    `budgets` is true if the model reasons by a budget."""
    turns = [turn for turn in _list(body["messages"]) if isinstance(turn, dict)]
    _check_results(turns)
    _check_blocks(turns, signatures)
    _check_settings(body, budgets)
    thinking = body.get("thinking")
    kind = thinking.get("type") if isinstance(thinking, dict) else None
    if kind == "enabled":
        _check_loop(turns)
    if kind == "disabled" and turns[-1]["role"] == "assistant" and _begins_with_thinking(turns[-1]):
        raise VendorRefusal("When thinking is disabled, an `assistant` message in the final position cannot ...")


def _check_settings(body: JsonObject, budgets: bool) -> None:
    thinking, choice = body.get("thinking"), body.get("tool_choice")
    if not isinstance(thinking, dict) or thinking.get("type") == "disabled":
        return
    if thinking["type"] == "adaptive" and budgets:
        raise VendorRefusal("adaptive thinking is not supported on this model")
    if body.get("temperature", 1) != 1:
        raise VendorRefusal("`temperature` may only be set to 1 when thinking is enabled")
    if thinking["type"] != "enabled":
        return
    budget, limit = thinking["budget_tokens"], body["max_tokens"]
    if not isinstance(budget, int) or not isinstance(limit, int) or not 1024 <= budget < limit:
        raise VendorRefusal("`max_tokens` must be greater than `thinking.budget_tokens`")
    if isinstance(choice, dict) and choice["type"] in ("any", "tool"):
        raise VendorRefusal("Thinking may not be enabled when tool_choice forces tool use.")


def _check_results(turns: list[JsonObject]) -> None:
    """Every call needs its result in the next turn, and every result its call in the turn before."""
    asked: set[JsonValue] = set()
    for turn in turns:
        given = {block["tool_use_id"] for block in _blocks(turn) if block["type"] == "tool_result"}
        if given != asked:
            raise VendorRefusal(f"`tool_use` ids without `tool_result` blocks, or the other way: {given ^ asked}")
        asked = {block["id"] for block in _blocks(turn) if block["type"] == "tool_use"}
    if asked:
        raise VendorRefusal("`tool_use` ids were found without `tool_result` blocks immediately after")


def _check_blocks(turns: list[JsonObject], signatures: frozenset[str]) -> None:
    for turn in turns:
        for block in _blocks(turn):
            if block["type"] in ("thinking", "redacted_thinking") and turn["role"] != "assistant":
                raise VendorRefusal("thinking in a user's turn")
            if block["type"] == "thinking" and block["signature"] not in signatures:
                raise VendorRefusal("Invalid `signature` in `thinking` block")
            if block["type"] == "text" and not str(block["text"]).strip():
                raise VendorRefusal("text content blocks must be non-empty")
    last = turns[-1]
    if last["role"] == "assistant" and str(last["content"] or "")[-1:].isspace():
        raise VendorRefusal("final assistant content cannot end with trailing whitespace")


def _check_loop(turns: list[JsonObject]) -> None:
    """Raise VendorRefusal unless the loop of the last turn began with a `thinking` block."""
    loop: list[JsonObject] = []
    for turn in reversed(turns):
        if turn["role"] == "assistant":
            loop.append(turn)
        elif not any(block["type"] == "tool_result" for block in _blocks(turn)):
            break
    if loop and not _begins_with_thinking(loop[-1]):
        raise VendorRefusal("Expected `thinking` or `redacted_thinking`, but found `tool_use`.")


def _begins_with_thinking(turn: JsonObject) -> bool:
    first = next(_blocks(turn), None)
    return first is not None and first["type"] in ("thinking", "redacted_thinking")


def _blocks(turn: JsonObject) -> Iterator[JsonObject]:
    content = turn["content"]
    if isinstance(content, str):
        yield {"type": "text", "text": content}
    for block in _list(content):
        if isinstance(block, dict):
            yield block


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []
