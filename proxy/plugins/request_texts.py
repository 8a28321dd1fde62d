"""The texts of a request, for its guards, and the request with other texts in their place. Pure.

What is shown is every string but keys, and what only gives the request its shape: roles, types, ids, names of tools,
data of media. A rewritten text must reach no vendor in its first form: a client's own body is left out then, so that
the request is translated for every vendor, and with a turn of the model's that has changed goes what it thought, whose
signature and place no longer fit.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar, cast

from providers.json_types import JsonObject, JsonValue
from providers.tasks.embeddings import EmbeddingsRequest
from providers.tasks.pass_on import PassedForm, PassedRequest
from providers.tasks.rerank import RerankRequest
from providers.unified_request import ChatPrompt, Guided, Params, TextPrompt, TokenPrompt, UnifiedRequest
from proxy.errors import FieldProblem, GatewayError, invalid_request
from proxy.plugins.answer_texts import rewritten_arguments, unescaped
from proxy.plugins.api import GuardedText, TextKind

AnyRequest = UnifiedRequest | EmbeddingsRequest | RerankRequest | PassedRequest
Q = TypeVar("Q")

_SHAPE: Final = frozenset(
    {"role", "type", "id", "tool_call_id", "tool_use_id", "call_id", "item_id", "signature", "thought_signature"}
    | {"reasoning_signature", "encrypted_content", "data", "media_type", "mime_type", "format", "detail", "file_id"}
    | {"name", "required", "$ref", "model", "ttl", "status", "voice", "response_format", "encoding_format"}
)
"""Keys whose strings are not shown."""

_THOUGHT: Final = ("reasoning", "reasoning_content", "reasoning_details", "thinking_blocks", "reasoning_signature")
"""Members of a message in which clients send back what the model thought."""

_ARGUMENTS: Final = "arguments"
"""Key of the JSON that a tool was called with, in Chat Completions and in Responses."""

_INLINE: Final = "data:"
_EXTRA: Final = "inference_extra_params"

_PARAMS: Final = ("suffix", "stop", "tools", "response_format", "metadata", "prediction")

_Change = Callable[[str, str, str], str]
"""Takes a text, the key that it stands under, and its place; returns the text in its stead."""


class TextCollector:
    """Collects texts as they are walked past."""

    def __init__(self) -> None:
        self.texts: list[GuardedText] = []
        self.role = ""
        self.kind: TextKind = "other"

    def take(self, text: str, key: str, place: str) -> str:
        kind = self.kind
        if key == _ARGUMENTS and kind in ("content", "reasoning"):
            kind = "tool_arguments"
        shown = unescaped(text) if key == _ARGUMENTS else text
        self.texts.append(GuardedText(shown, kind, self.role, place))
        return text


class TextReplacer:
    """Puts texts in place in the order in which they were collected."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = iter(texts)
        self.role = ""
        self.kind: TextKind = "other"

    def take(self, text: str, key: str, place: str) -> str:
        new = next(self._texts)
        return rewritten_arguments(text, new) if key == _ARGUMENTS else new


_Walk = TextCollector | TextReplacer


def texts_of(request: object) -> tuple[GuardedText, ...]:
    """Return every text of a request. Raises GatewayError for one that guards cannot read."""
    reader = TextCollector()
    _walked(_known(request), reader)
    if isinstance(request, UnifiedRequest) and request.native is not None:
        shown = {each.text for each in reader.texts}
        reader.texts += [text for text in _of_body(request.native.body) if text.text not in shown]
    return tuple(reader.texts)


def rewritten(request: Q, texts: Sequence[str]) -> tuple[Q, tuple[str, ...]]:
    """Return the request with these texts in place of those of `texts_of`, and what is left out for it."""
    made, dropped = _walked(_known(request), TextReplacer(texts))
    return cast(Q, made), dropped


def _known(request: object) -> AnyRequest:
    """Return a request of a kind whose texts are known. Raises TypeError for another: it must not pass unseen."""
    if not isinstance(request, AnyRequest):
        raise TypeError(f"no texts of a {type(request).__name__} are known")
    return request


def _of_body(body: JsonObject) -> Iterator[GuardedText]:
    reader = TextCollector()
    mapped(body, "", "body", reader.take)
    yield from reader.texts


def _walked(request: AnyRequest, walk: _Walk) -> tuple[AnyRequest, tuple[str, ...]]:
    match request:
        case UnifiedRequest():
            return _unified(request, walk)
        case EmbeddingsRequest():
            return _embeddings(request, walk), ()
        case RerankRequest():
            return _rerank(request, walk), ()
        case PassedRequest():
            return _passed_on(request, walk), ()


# Requests for text ---------------------------------------------------------------------------------------------------


def _unified(request: UnifiedRequest, walk: _Walk) -> tuple[UnifiedRequest, tuple[str, ...]]:
    dropped: list[str] = []
    walk.kind, walk.role = "content", "user"
    prompt = request.prompt
    match prompt:
        case TokenPrompt():
            raise _unreadable("prompt")
        case TextPrompt(texts):
            places = ("prompt[{}]" if prompt.listed or len(texts) > 1 else "prompt").format
            changed = tuple([walk.take(text, "prompt", places(number)) for number, text in enumerate(texts)])
            prompt = replace(prompt, texts=changed)
        case ChatPrompt(messages):
            told = [_message(message, number, walk, dropped) for number, message in enumerate(messages)]
            prompt = replace(prompt, messages=tuple(told))
    walk.role = ""
    params = _params(request.params, walk)
    unknown, extra = _beside(request.unknown, "", walk), _beside(request.extra_params, _EXTRA, walk)
    made = replace(request, prompt=prompt, params=params, unknown=unknown, extra_params=extra, native=None)
    return made, tuple(dropped)


def _message(message: JsonObject, number: int, walk: _Walk, dropped: list[str]) -> JsonObject:
    role = message.get("role")
    walk.role = role if isinstance(role, str) else ""
    place = f"messages[{number}]"
    made: JsonObject = {}
    for key, value in message.items():
        walk.kind = "reasoning" if key in _THOUGHT else "tool_result" if walk.role == "tool" else "content"
        if key == "name" and isinstance(value, str) and walk.role not in ("tool", "function"):
            made[key] = walk.take(value, key, f"{place}.name")
        else:
            made[key] = mapped(value, key, f"{place}.{key}", walk.take)
    if made != message and any(key in made for key in _THOUGHT):
        dropped.append("reasoning")
        return {key: value for key, value in made.items() if key not in _THOUGHT}
    return made


def _params(params: Params, walk: _Walk) -> Params:
    made: dict[str, object] = dict(params)
    for name in _PARAMS:
        if name in made:
            walk.kind = "tool_definition" if name == "tools" else "other"
            made[name] = mapped(made[name], "", name, walk.take)
    walk.kind = "other"
    guided = params.get("guided")
    if guided is not None:
        value = mapped(guided.value, "", guided.field, walk.take)
        made["guided"] = Guided(guided.kind, cast("JsonObject | tuple[str, ...] | str", value))
    return cast(Params, made)


def mapped(value: object, key: str, place: str, change: _Change) -> JsonValue:
    """Return a JSON value with each shown string changed. The depth of a client's JSON is limited where it is read."""
    if isinstance(value, str):
        return value if key in _SHAPE or value.startswith(_INLINE) else change(value, key, place)
    if isinstance(value, Mapping):
        return {name: mapped(each, name, f"{place}.{name}", change) for name, each in value.items()}
    if isinstance(value, list | tuple):
        made = [mapped(each, key, f"{place}[{number}]", change) for number, each in enumerate(value)]
        return cast(JsonValue, tuple(made)) if isinstance(value, tuple) else made
    return cast(JsonValue, value)


# Other tasks ---------------------------------------------------------------------------------------------------------


def _embeddings(request: EmbeddingsRequest, walk: _Walk) -> EmbeddingsRequest:
    if request.tokenized:
        raise _unreadable("input")
    walk.kind, walk.role = "content", "user"
    texts = tuple([walk.take(text, "input", f"input[{number}]") for number, text in enumerate(request.texts)])
    unknown, extra = _beside(request.unknown, "", walk), _beside(request.extra_params, _EXTRA, walk)
    return replace(request, inputs=texts, unknown=unknown, extra_params=extra)


def _rerank(request: RerankRequest, walk: _Walk) -> RerankRequest:
    walk.kind, walk.role = "content", "user"
    query = walk.take(request.query, "query", "query")
    texts = tuple([walk.take(text, "documents", f"documents[{at}]") for at, text in enumerate(request.documents)])
    # The client's own objects, which an answer may show again, have the texts in their first form.
    objects = request.objects if texts == request.documents else {}
    unknown, extra = _beside(request.unknown, "", walk), _beside(request.extra_params, _EXTRA, walk)
    return replace(request, query=query, documents=texts, objects=objects, unknown=unknown, extra_params=extra)


def _passed_on(request: PassedRequest, walk: _Walk) -> PassedRequest:
    walk.kind, walk.role = "content", "user"
    if isinstance(request.content, PassedForm):
        if mapped(request.content.fields, "", "", walk.take) != request.content.fields:
            raise _unreadable("a form")  # it goes on as it came, from a file
        return request
    content = cast(JsonObject, mapped(request.content, "", "", walk.take))
    extra = cast("JsonObject | None", _beside(request.extra_params, _EXTRA, walk))
    return replace(request, content=content, extra_params=extra)


def _beside(members: Mapping[str, JsonValue] | None, place: str, walk: _Walk) -> Mapping[str, JsonValue] | None:
    """Return members that no API's fields are, changed as texts."""
    walk.kind, walk.role = "other", ""
    return cast("Mapping[str, JsonValue] | None", mapped(members, "", place, walk.take))


def _unreadable(what: str) -> GatewayError:
    message = f"'{what}' cannot be read by the plugins that check your team's requests; send text."
    return invalid_request((FieldProblem((what,), message, "unsupported_parameter"),))
