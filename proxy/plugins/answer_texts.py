"""Collect the texts of a choice of a response for its guards, and replace them by other texts. Pure.

Texts include the names of called tools, and finish reasons that are not in the list of known ones.

A rewritten choice omits everything that would reveal its original text: log probabilities, signatures, and all content
that has no text of its own to rewrite (details of reasoning, annotations, audio, the vendor's own fields).
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from providers.completion import (
    Choice,
    Chunk,
    Completion,
    ContentLogprobs,
    Extras,
    LegacyLogprobs,
    Logprobs,
    ToolCall,
    ToolCallDelta,
    Usage,
)
from providers.dialects.shared.read_json import parse_json
from providers.emulation.collect_stream import Gatherer
from providers.emulation.join_extras import size_of_extras
from providers.json_types import JsonObject, JsonValue
from proxy.plugins.api import GuardedText, TextKind
from proxy.plugins.request_strings.answer_strings import strings_of
from proxy.plugins.request_strings.known_words import ENDS, TIERS
from proxy.plugins.request_strings.places import OWN, is_fingerprint, is_id

ROLE = "assistant"

_VENDOR_FIELDS: Final = frozenset({"output", "content", "error", "usage", "status", "service_tier"})
"""Fields of a vendor's own body that repeat no field of the request."""

_PAIR: Final = r"[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_ESCAPES: Final = re.compile(rf"\\(?:u(?:{_PAIR}|[0-9a-fA-F]{{4}})|/)")
_EVERY_ESCAPE: Final = re.compile(rf"{_ESCAPES.pattern}|\\.", re.DOTALL)
"""The escapes that a JSON string does not need (RFC 8259, section 7). The second pattern is for texts in which a
backslash may itself be escaped: it matches every escape."""

_QUOTED: Final = frozenset({0x22, 0x5C, *range(0x20)})


def unescaped(arguments: str) -> str:
    """Return a tool's arguments with every character unescaped that JSON permits unescaped. The arguments may be
    incomplete: vendors cut them off at max_tokens. Takes at most 0.1 us per character."""
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
    return f"\\u{code:04x}" if 0xD800 <= code < 0xE000 else chr(code)  # one half of a surrogate pair stays escaped


def rewritten_arguments(old: str, new: str) -> str:
    """Return the arguments to send, if guards saw `old` unescaped: `old` itself if the guards did not change it, else
    `new`."""
    return old if new == unescaped(old) else new


def _shown(tool_call: ToolCall) -> str:
    return unescaped(tool_call.arguments) if tool_call.kind == "function" else tool_call.arguments


def size_of_choice(choice: Choice) -> int:
    """Return the approximate number of characters of a choice. This is cheaper than reading its texts."""
    calls = sum([len(call.arguments) for call in choice.tool_calls])
    beside = 0 if choice.extras is None else size_of_extras(choice.extras)
    return calls + beside + len(choice.text) + len(choice.reasoning or "") + len(choice.refusal or "")


def texts_of_choice(choice: Choice) -> tuple[GuardedText, ...]:
    """Return every text of a choice. The texts that can be rewritten come first, in the order of `with_texts`."""
    texts = [*_own_texts(choice)]

    def collect(text: str, kind: TextKind, place: str) -> str:
        texts.append(GuardedText(text, kind, ROLE, place))
        return text

    if choice.tool_calls or has_odd_end(choice):
        _named(choice, collect)
    return (*texts, *_texts_beside(choice.extras), *_texts_of_logprobs(choice), *_texts_of_seals(choice))


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


Take = Callable[[str, TextKind, str], str]
"""Takes a text, its kind and its location, and returns the text that replaces it."""


def _named(choice: Choice, take: Take) -> Choice:
    """Return a choice with `take` applied to the names and ids of its calls and to its unknown finish reasons. Ids
    that look like ids are left out."""
    calls = [_named_call(call, f"tool_calls[{number}]", take) for number, call in enumerate(choice.tool_calls)]
    finish, native, matched = choice.finish_reason, choice.native_finish_reason, choice.matched_stop
    if finish.lower() not in ENDS:
        finish = take(finish, "other", "finish_reason")
    if native is not None and native.lower() not in ENDS:
        native = take(native, "other", "native_finish_reason")
    if isinstance(matched, str) and matched:
        matched = take(matched, "other", "stop_sequence")
    return replace(
        choice, tool_calls=tuple(calls), finish_reason=finish, native_finish_reason=native, matched_stop=matched
    )


def _named_call(tool_call: ToolCall, place: str, take: Take) -> ToolCall:
    name = take(tool_call.name, "name", f"{place}.name") if tool_call.name else tool_call.name
    identity = tool_call.id if is_id(tool_call.id) else take(tool_call.id, "other", f"{place}.id")
    return (
        tool_call if (name, identity) == (tool_call.name, tool_call.id) else replace(tool_call, name=name, id=identity)
    )


def has_odd_end(ended: Choice | Chunk) -> bool:
    """Return whether the end of a choice contains text beyond the known finish reasons."""
    words = (ended.finish_reason, ended.native_finish_reason)
    return isinstance(ended.matched_stop, str) or any(word is not None and word.lower() not in ENDS for word in words)


def _texts_of_seals(choice: Choice) -> Iterator[GuardedText]:
    """Yield the strings in signature fields that do not have the form of a signature."""
    sealed = None if choice.signature is None else {"type": "thinking", "signature": choice.signature}
    extras = [call.extra for call in choice.tool_calls if call.extra]
    for value, kind in ((sealed, "part"), (extras, "call")):
        if value:
            yield from (GuardedText(text, "other", ROLE, "signature") for text in strings_of(value, kind))


def _texts_of_logprobs(choice: Choice) -> Iterator[GuardedText]:
    """Yield the tokens as one text, unless they are the text of the choice, and then all other candidates, one per
    line."""
    if choice.logprobs is None:
        return
    tokens, others = _tokens(choice.logprobs)
    token_text = "".join(tokens)
    if token_text and token_text not in (choice.text, choice.refusal):
        yield GuardedText(token_text, "other", ROLE, "logprobs")
    if others:
        yield GuardedText("\n".join(others), "other", ROLE, "top_logprobs")


def _tokens(logprobs: Logprobs) -> tuple[list[str], list[str]]:
    """Return the tokens, and the candidates that were not chosen."""
    match logprobs:
        case ContentLogprobs(content, refusal):
            tokens = [*content, *refusal]
            others = [top.token for each in tokens for top in each.top if top.token != each.token]
            return [each.token for each in tokens], others
        case LegacyLogprobs(tokens=texts, top_logprobs=tops):
            return [*texts], [
                name for text, top in zip(texts, tops or (), strict=False) for name in top or () if name != text
            ]


def _texts_beside(extras: Extras | None) -> Iterator[GuardedText]:
    """Yield the texts of a choice's additional fields."""
    if extras is None:
        return
    members = {
        "reasoning_details": (extras.reasoning_details, "part"),
        "annotations": (extras.annotations, "part"),
        "audio": (extras.audio, "spoken"),
        "message": (extras.message, OWN),
        "choice": (extras.choice, OWN),
        "answer": (extras.answer, OWN),
        "images": (extras.images, OWN),
    }
    for name, (value, kind) in members.items():
        if not value:
            continue
        yield from (GuardedText(text, "other", ROLE, name) for text in strings_of(value, kind))


def with_texts(choice: Choice, texts: Sequence[str]) -> tuple[Choice, tuple[str, ...]]:
    """Return the choice with these texts in place of the texts of `texts_of_choice`, and the names of the fields that
    are omitted for it."""
    given = iter(texts)
    reasoning = next(given) if choice.reasoning else choice.reasoning
    text = next(given) if choice.text else choice.text
    repeated = choice.refusal is not None and choice.refusal == choice.text
    refusal = text if repeated else next(given) if choice.refusal else choice.refusal
    calls = [_with_arguments(call, next(given)) if call.arguments else call for call in choice.tool_calls]
    extras = choice.extras
    kept = (
        None if extras is None or not extras.images or any(strings_of(extras.images)) else Extras(images=extras.images)
    )
    named = _named(replace(choice, tool_calls=tuple(calls)), lambda text, kind, place: next(given))
    made = replace(
        named,
        text=text,
        reasoning=reasoning,
        refusal=refusal,
        tool_calls=tuple(replace(call, extra=None) for call in named.tool_calls),
        logprobs=None,
        signature=None,
        extras=kept,
    )
    return made, tuple(_left_out(choice))


def _with_arguments(tool_call: ToolCall, text: str) -> ToolCall:
    return tool_call if text == _shown(tool_call) else replace(tool_call, arguments=text)


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
    """Return a response with rewritten choices, without the vendor's own body and fields."""
    return replace(completion, choices=tuple(choices), native=None, extra=None)


def texts_beside(completion: Completion, sent: JsonObject | None) -> tuple[GuardedText, ...]:
    """Return the texts of a response outside its choices. These are the texts of the vendor's own fields of the
    response and of its usage, and unknown values of `system_fingerprint` and `service_tier`. The texts of the vendor's
    own body are included unless a choice has them. `sent` is the client's own body: texts that the vendor repeats from
    it are not included."""
    held = [*_labels(completion)]
    for members in _members_beside(completion):
        held += strings_of(members)
    if completion.native is not None:
        shown = {each.text for choice in completion.choices for each in texts_of_choice(choice)}
        held += [text for text in _of_body(completion.native, sent or {}) if text not in shown]
    return tuple([GuardedText(text, "other", ROLE, "answer") for text in held])


def _members_beside(completion: Completion) -> list[Mapping[str, JsonValue]]:
    """Return the vendor's own fields of a response and of its usage, if they are not empty."""
    usage = completion.usage
    return [each for each in (completion.extra, None if usage is None else usage.extra) if each]


def _of_body(data: bytes, sent: JsonObject) -> Iterator[str]:
    body = parse_json(data)
    if not isinstance(body, dict):
        return
    repeated = {text for name in body.keys() & sent.keys() - _VENDOR_FIELDS for text in strings_of(sent[name])}
    yield from (text for text in strings_of(body, "native answer") if text not in repeated)


def _labels(answer: Completion | Chunk) -> Iterator[str]:
    """Yield the values of `system_fingerprint` and `service_tier` that have no known form."""
    fingerprint, tier = answer.system_fingerprint, answer.service_tier
    if fingerprint and not is_fingerprint(fingerprint):
        yield fingerprint
    if tier and tier not in TIERS:
        yield tier


def size_beside(completion: Completion) -> int:
    """Return the approximate number of characters that `texts_beside` reads."""
    beside = sum([size_of_extras(Extras(answer=each)) for each in _members_beside(completion)])
    return beside + (0 if completion.native is None else 2 * len(completion.native))


def without_beside(completion: Completion) -> Completion:
    """Return a response without the fields that `texts_beside` reads. The vendor's own body is removed too."""
    usage = completion.usage and replace(completion.usage, extra=None)
    made = (
        completion if not any(_labels(completion)) else replace(completion, system_fingerprint=None, service_tier=None)
    )
    return replace(made, usage=usage, native=None, extra=None)


def labels_of_chunk(chunk: Chunk) -> tuple[GuardedText, ...]:
    """Return the texts of a chunk's `system_fingerprint` and `service_tier`."""
    return tuple([GuardedText(text, "other", ROLE, "answer") for text in _labels(chunk)])


def texts_of_usage(usage: Usage) -> tuple[GuardedText, ...]:
    """Return the texts of the vendor's own fields of a usage."""
    return tuple([GuardedText(text, "other", ROLE, "usage") for text in strings_of(usage.extra)])


def choice_of(chunks: Sequence[Chunk], index: int) -> Choice:
    """Return the joined content of chunks of one choice as a choice. The chunks may be incomplete. Raises ValueError
    if a call has no name."""
    gatherer = Gatherer(1)
    for chunk in chunks:
        gatherer.add(chunk if chunk.index == 0 else replace(chunk, index=0))
    if not any(chunk.finish_reason for chunk in chunks):
        gatherer.add(Chunk(finish_reason="stop"))
    completion = gatherer.completion()
    (choice,) = completion.choices
    held = [chunk.extras for chunk in chunks if chunk.extras is not None]
    if held:
        extras = replace(choice.extras or Extras(), answer=completion.extra)
        choice = replace(choice, extras=_with_each_value(extras, held))
    return replace(_with_spoken(choice, chunks) if choice.refusal else choice, index=index)


def _with_spoken(choice: Choice, chunks: Iterable[Chunk]) -> Choice:
    """Return a choice that also has its text and refusal joined as one text, because some surfaces join them in a
    stream."""
    spoken = "".join([chunk.text or chunk.refusal or "" for chunk in chunks])
    if spoken in (choice.text, choice.refusal):
        return choice
    extras = choice.extras or Extras()
    return replace(choice, extras=replace(extras, message={**(extras.message or {}), "refusal": spoken}))


def _with_each_value(extras: Extras, held: Sequence[Extras]) -> Extras:
    """Return extras with every value that the vendor's own fields had in any chunk, and with strings also joined. Some
    clients use the last value of a field, others join the values."""
    return replace(
        extras,
        message=_each_value(extras.message, [each.message for each in held]),
        choice=_each_value(extras.choice, [each.choice for each in held]),
        answer=_each_value(extras.answer, [each.answer for each in held]),
    )


def _each_value(
    joined: Mapping[str, JsonValue] | None, parts: Iterable[Mapping[str, JsonValue] | None]
) -> JsonObject | None:
    found: dict[str, list[JsonValue]] = {}
    for part in parts:
        for name, value in (part or {}).items():
            found.setdefault(name, []).append(value)
    repeated: JsonObject = {
        name: [*values, "".join([value for value in values if isinstance(value, str)])]
        for name, values in found.items()
        if len(values) > 1
    }
    return {**(joined or {}), **repeated} or None


def chunk_of(choice: Choice, last: Chunk) -> Chunk:
    """Return a rewritten choice as one chunk. The chunk ends the choice if `last` does."""
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
        finish_reason=last.finish_reason and choice.finish_reason,
        native_finish_reason=choice.native_finish_reason,
        matched_stop=choice.matched_stop,
        system_fingerprint=last.system_fingerprint,
        service_tier=last.service_tier,
    )
