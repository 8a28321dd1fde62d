"""Scripted turns of the model `script`: the user sets the reasoning, the text and the calls of each turn.

A script is a JSON list in a fenced block, whose first line is three backticks and the word script:

    ```script
    [
      {"thinking": "Read first.", "text": "I look.", "calls": [{"name": "Read", "arguments": {"file_path": "/tmp/a"}}]},
      {"calls": [{"name": "Edit", "arguments": {"file_path": "/tmp/a", "old_string": "b", "new_string": "c"}}]},
      "It is done."
    ]
    ```

A turn is a text, or an object with any of `thinking`, `text` and `calls`. A call names a function of the request's
`tools`. Its `arguments` are an object, or a string that is sent unchanged, so that a model's broken JSON can be
simulated too. The script in the last user message that has one counts. The assistant's turns since that message are
skipped. Adjacent assistant messages count as one turn, because some clients and surfaces write the text of a turn and
its calls as several messages.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import orjson

from providers.json_types import JsonObject, JsonValue, nests_deeper
from providers.mock.errors import MockError, bad_request

MAX_SCRIPT = 48 * 1024
"""The maximum length of a script in characters. Splitting that many punctuation marks into tokens takes 10 ms."""

MAX_MESSAGES = 2048
MAX_TURNS = 256
MAX_CALLS = 16
MAX_DEPTH = 64
"""The maximum number of messages of a conversation, of turns, of calls of a turn, and of levels of objects and lists in
a script."""

_OPENING, _CLOSING = "```script", "\n```"


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A call of a function. `arguments` is a text, which need not be JSON."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ScriptedTurn:
    """One response of the model. Any of its parts may be empty."""

    thinking: str
    text: str
    calls: tuple[ScriptedCall, ...]


def next_turn(messages: JsonValue, functions: Iterable[str]) -> ScriptedTurn | None:
    """Return the model's next turn in a conversation, or `None` if no user message has a script.

    Raises MockError if the script is invalid, if it has no further turn, or if it calls a function that is not among
    `functions`.
    """
    turns = [message for message in messages if isinstance(message, dict)] if isinstance(messages, list) else []
    if len(turns) > MAX_MESSAGES:
        raise bad_request("messages", f"'messages' must not have more than {MAX_MESSAGES} messages.")
    last_script = _last_script(turns)
    if last_script is None:
        return None
    script, position = last_script
    number = _turns_since(turns, position)
    if number >= len(script):
        raise _invalid(f"has only {len(script)} turns, and all of them are done")
    turn = _turn(script[number], number)
    offered = set(functions)
    for call in turn.calls:
        if call.name not in offered:
            raise _invalid(f"calls '{call.name[:100]}', which is not among the tools: {_listed(offered)}")
    return turn


def _last_script(turns: Sequence[JsonObject]) -> tuple[list[JsonValue], int] | None:
    """Return the last script and the index of its message."""
    for position in range(len(turns) - 1, -1, -1):
        if turns[position].get("role") == "user":
            for text in _texts(turns[position].get("content")):
                if (block := _fenced(text)) is not None:
                    return _parsed(block), position
    return None


def _texts(content: JsonValue) -> list[str]:
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return [text for text in texts if isinstance(text, str)]


def _fenced(text: str) -> str | None:
    """Return the content of the first script block in a text."""
    start = 0 if text.startswith(_OPENING) else text.find("\n" + _OPENING) + 1
    if not text.startswith(_OPENING, start):
        return None
    begin = text.find("\n", start)
    if begin < 0 or text[start + len(_OPENING) : begin].strip():
        return None
    end = text.find(_CLOSING, begin)
    if end < 0:
        raise _invalid("has no closing fence")
    if end - begin > MAX_SCRIPT:
        raise _invalid(f"is longer than {MAX_SCRIPT} characters")
    return text[begin:end]


def _parsed(block: str) -> list[JsonValue]:
    try:
        script = orjson.loads(block)
    except orjson.JSONDecodeError as error:
        raise _invalid(f"is not JSON: {error}") from None
    if not isinstance(script, list) or not 0 < len(script) <= MAX_TURNS or nests_deeper(script, MAX_DEPTH):
        raise _invalid(f"must be a list of 1 to {MAX_TURNS} turns that nest no deeper than {MAX_DEPTH} levels")
    return script


def _turns_since(turns: Sequence[JsonObject], position: int) -> int:
    roles = [turn.get("role") for turn in turns[position:]]
    return sum(role == "assistant" != before for before, role in pairwise(roles))


def _turn(turn: JsonValue, number: int) -> ScriptedTurn:
    if isinstance(turn, str):
        return ScriptedTurn("", turn, ())
    if not isinstance(turn, dict) or not turn or turn.keys() - {"thinking", "text", "calls"}:
        raise _invalid(f"must have a text or an object of thinking, text and calls as turn {number + 1}")
    thinking, text, calls = turn.get("thinking", ""), turn.get("text", ""), turn.get("calls", [])
    if not isinstance(thinking, str) or not isinstance(text, str):
        raise _invalid(f"must have strings as thinking and text of turn {number + 1}")
    if not isinstance(calls, list) or len(calls) > MAX_CALLS:
        raise _invalid(f"must have a list of at most {MAX_CALLS} calls in turn {number + 1}")
    return ScriptedTurn(thinking, text, tuple([_call(call, number) for call in calls]))


def _call(call: JsonValue, number: int) -> ScriptedCall:
    name = call.get("name") if isinstance(call, dict) else None
    arguments = call.get("arguments", {}) if isinstance(call, dict) else None
    if not isinstance(name, str) or not isinstance(arguments, dict | str):
        raise _invalid(f"must give each call of turn {number + 1} a name and arguments, an object or a string")
    return ScriptedCall(name, arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode())


def _listed(names: Iterable[str]) -> str:
    first = sorted(names)[:20]
    return ", ".join([name[:100] for name in first]) or "there are none"


def _invalid(problem: str) -> MockError:
    return bad_request("messages", f"The script in the conversation {problem}.")
