"""The texts of a choice of an answer, for its guards, and the choice with other texts in their place. Pure.

What a rewritten choice cannot keep without telling its first form is left out: log probabilities, signatures, and all
that has no text of its own to rewrite (details of reasoning, annotations, sounds, the vendor's own members).
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from providers.completion import Choice, Chunk, Completion, Extras, ToolCall, ToolCallDelta
from providers.emulation.collect_stream import Gatherer
from providers.json_types import JsonValue
from proxy.plugins.api import GuardedText

ROLE = "assistant"

_PAIR: Final = r"[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_ESCAPES: Final = re.compile(rf"\\(?:u(?:{_PAIR}|[0-9a-fA-F]{{4}})|/)")
_EVERY_ESCAPE: Final = re.compile(rf"{_ESCAPES.pattern}|\\.", re.DOTALL)
"""The escapes of a JSON string that it can do without (RFC 8259, section 7); then those among all escapes, where a
backslash may be escaped itself."""

_IMAGE: Final = re.compile(r"data:image/[a-z0-9.+-]{1,64};base64,[A-Za-z0-9+/=_-]*\Z", re.IGNORECASE)
"""An image in an answer; its address at a vendor is a text like others."""

_QUOTED: Final = frozenset({0x22, 0x5C, *range(0x20)})


def unescaped(arguments: str) -> str:
    """Return a tool's arguments with every character of their strings as itself, where JSON lets it stand so. They
    need not be whole: vendors cut them off at max_tokens. It takes 0.1 us a character at most."""
    if "\\u" not in arguments and "\\/" not in arguments:
        return arguments
    return (_EVERY_ESCAPE if "\\\\" in arguments else _ESCAPES).sub(_character, arguments)


def _character(escape: re.Match[str]) -> str:
    text = escape[0]
    if text[1] != "u":
        return "/" if text == "\\/" else text
    if len(text) == 2:
        return text  # cut off
    code = int(text[2:6], 16)
    if len(text) > 6:
        return chr(0x10000 + ((code - 0xD800) << 10) + (int(text[8:], 16) - 0xDC00))
    if code in _QUOTED:
        return json.dumps(chr(code))[1:-1]
    return f"\\u{code:04x}" if 0xD800 <= code < 0xE000 else chr(code)  # half a pair stays escaped


def rewritten_arguments(old: str, new: str) -> str:
    """Return what stands for arguments that guards saw unescaped: the first form where they left them so."""
    return old if new == unescaped(old) else new


def _shown(call: ToolCall) -> str:
    return unescaped(call.arguments) if call.kind == "function" else call.arguments


def size_of_choice(choice: Choice) -> int:
    """Return about how many characters a choice has, for less than reading them takes."""
    calls = sum([len(call.arguments) for call in choice.tool_calls])
    return calls + len(choice.text) + len(choice.reasoning or "") + len(choice.refusal or "")


def texts_of_choice(choice: Choice) -> tuple[GuardedText, ...]:
    """Return every text of a choice: those that can be rewritten first, in the order of `with_texts`."""
    return (*_own_texts(choice), *_texts_beside(choice.extras))


def _own_texts(choice: Choice) -> Iterator[GuardedText]:
    if choice.reasoning:
        yield GuardedText(choice.reasoning, "reasoning", ROLE, "reasoning")
    if choice.text:
        yield GuardedText(choice.text, "content", ROLE, "content")
    if choice.refusal and choice.refusal != choice.text:
        yield GuardedText(choice.refusal, "refusal", ROLE, "refusal")
    for number, call in enumerate(choice.tool_calls):
        if call.arguments:
            yield GuardedText(_shown(call), "tool_arguments", ROLE, f"tool_calls[{number}].{call.name}")


def _texts_beside(extras: Extras | None) -> Iterator[GuardedText]:
    """Yield the texts of what a choice holds besides."""
    if extras is None:
        return
    members: dict[str, JsonValue] = {
        "reasoning_details": [*extras.reasoning_details],
        "annotations": [*extras.annotations],
        "audio": extras.audio and extras.audio.get("transcript"),
        "message": {**(extras.message or {})},
        "choice": {**(extras.choice or {})},
        "answer": {**(extras.answer or {})},
        "images": _addresses(extras),
    }
    for name, value in members.items():
        yield from (GuardedText(text, "other", ROLE, name) for text in _strings(value))


def _addresses(extras: Extras) -> list[JsonValue]:
    """Return what of images is no data of theirs."""
    strings = [text for image in extras.images for text in _strings(image)]
    return [text for text in strings if not _IMAGE.match(text)]


def _strings(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)
    elif isinstance(value, dict):
        for name, each in value.items():
            if name not in ("signature", "data", "id", "type"):
                yield from _strings(each)


def with_texts(choice: Choice, texts: Sequence[str]) -> tuple[Choice, tuple[str, ...]]:
    """Return the choice with these texts in place of those of `texts_of_choice`, and what is left out for it."""
    given = iter(texts)
    reasoning = next(given) if choice.reasoning else choice.reasoning
    text = next(given) if choice.text else choice.text
    repeated = choice.refusal is not None and choice.refusal == choice.text
    refusal = text if repeated else next(given) if choice.refusal else choice.refusal
    calls = [_with_arguments(call, next(given)) if call.arguments else call for call in choice.tool_calls]
    extras = choice.extras
    kept = None if extras is None or not extras.images or _addresses(extras) else Extras(images=extras.images)
    made = replace(
        choice,
        text=text,
        reasoning=reasoning,
        refusal=refusal,
        tool_calls=tuple(replace(call, extra=None) for call in calls),
        logprobs=None,
        signature=None,
        extras=kept,
    )
    return made, tuple(_left_out(choice))


def _with_arguments(call: ToolCall, text: str) -> ToolCall:
    return call if text == _shown(call) else replace(call, arguments=text)


def _left_out(choice: Choice) -> Iterator[str]:
    extras = choice.extras or Extras()
    if choice.logprobs is not None:
        yield "logprobs"
    if choice.signature is not None or any(call.extra for call in choice.tool_calls):
        yield "signature"
    for name in ("reasoning_details", "annotations", "audio"):
        if getattr(extras, name):
            yield name
    for members in (extras.message, extras.choice, extras.answer):
        yield from members or ()


def with_choices(completion: Completion, choices: Iterable[Choice]) -> Completion:
    """Return an answer with rewritten choices, and nothing that the vendor wrote of it in another form."""
    return replace(completion, choices=tuple(choices), native=None, extra=None)


def beside_choices(completion: Completion) -> Choice | None:
    """Return as a choice what an answer holds beside its choices: members without a common form, and those of its
    usage. `None` if there are none."""
    usage = completion.usage
    held = {**(completion.extra or {}), **({"usage": {**usage.extra}} if usage is not None and usage.extra else {})}
    return Choice(0, "", "stop", extras=Extras(answer=held)) if held else None


def without_beside(completion: Completion) -> Completion:
    """Return an answer without what `beside_choices` holds, nor what the vendor wrote of it in another form."""
    usage = completion.usage and replace(completion.usage, extra=None)
    return replace(completion, usage=usage, native=None, extra=None)


def choice_of(chunks: Sequence[Chunk], index: int) -> Choice:
    """Return what chunks of one choice hold together, as a choice, which need not have ended. Raises ValueError for a
    call without a name."""
    gatherer = Gatherer(1)
    for chunk in chunks:
        gatherer.add(chunk if chunk.index == 0 else replace(chunk, index=0))
    if not any(chunk.finish_reason for chunk in chunks):
        gatherer.add(Chunk(finish_reason="stop"))
    (choice,) = gatherer.completion().choices
    return replace(choice, index=index)


def chunk_of(choice: Choice, last: Chunk) -> Chunk:
    """Return a rewritten choice as one chunk, which ends the choice if `last` does."""
    calls = [
        ToolCallDelta(number, call.id, call.name, call.arguments, call.kind)
        for number, call in enumerate(choice.tool_calls)
    ]
    return Chunk(
        index=choice.index,
        text=choice.text,
        refusal=choice.refusal,
        reasoning=choice.reasoning,
        tool_calls=tuple(calls),
        extras=choice.extras,
        finish_reason=last.finish_reason,
        native_finish_reason=last.native_finish_reason,
        matched_stop=last.matched_stop,
        system_fingerprint=last.system_fingerprint,
        service_tier=last.service_tier,
    )
