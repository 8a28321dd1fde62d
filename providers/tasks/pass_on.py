"""Passes on requests in which only the model's name is changed: moderations, transcriptions, speech, images.

Vendors have OpenAI's own paths for these tasks, so nothing has to be translated. Sources: OpenAI OpenAPI 2.3.0
`CreateModerationRequest`, `CreateTranscriptionRequest`, `CreateSpeechRequest`, `CreateImageRequest`; `mistralai` 3.7.0,
`together` 3.1.1, read in November 2026.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import orjson

from providers.client_extras.extra_headers import check_headers
from providers.client_extras.hosts_paths_and_code import Search, find_reserved, is_reserved
from providers.client_extras.proxy_instructions import is_credential, is_left_out
from providers.dialect import Upload, UpstreamRequest
from providers.dialects.shared.operations import endpoint_url
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue, merged
from providers.request_fields import shown_names
from providers.target import Target
from providers.tasks.task_draft import MOST_REPORTED
from providers.unified_request import Task

_TASK_LABELS: Final[Mapping[Task, str]] = {
    Task.MODERATIONS: "moderations",
    Task.TRANSCRIPTIONS: "transcriptions of audio",
    Task.SPEECH: "speech",
    Task.IMAGES: "generation of images",
}

_FIELDS: Final = frozenset(
    {"model", "input", "prompt", "n", "user", "stream", "response_format"}
    | {"voice", "instructions", "speed", "stream_format", "language", "temperature", "timestamp_granularities[]"}
    | {"include[]", "chunking_strategy", "file", "known_speaker_names[]", "known_speaker_references[]"}
    | {"background", "moderation", "output_compression", "output_format", "partial_images", "quality", "size", "style"}
)
"""Fields that OpenAI's API has for these tasks. Their values are texts, numbers and words, and name nothing for a
server to fetch."""


@dataclass(frozen=True, slots=True)
class PassedForm:
    """A multipart form that is stored outside of memory.

    `fields` are the texts of its fields, with a list for several fields of one name. `with_model` returns the form with
    another model's name.
    """

    fields: Mapping[str, JsonValue]
    content_type: str
    with_model: Callable[[str], Upload] = field(repr=False)


@dataclass(frozen=True, slots=True)
class PassedRequest:
    """A request to pass on.

    `content` is the JSON body or the form of the request, with the client's model if the client named one, and without
    fields of the gateway. `extra_params` and `extra_headers` are the client's `inference_extra_params` and
    `inference_extra_headers`.
    """

    task: Task
    model: str
    content: JsonObject | PassedForm
    stream: bool = False
    timeout: float | None = None
    extra_params: JsonObject | None = None
    extra_headers: Mapping[str, str] | None = None

    @property
    def passes_unknown(self) -> bool:
        """Always true, because the gateway knows no field of such a request except the model."""
        return True

    @property
    def user(self) -> str | None:
        """The end user that the client names, otherwise `None`."""
        fields = self.content.fields if isinstance(self.content, PassedForm) else self.content
        user = fields.get("user")
        return user if isinstance(user, str) else None

    @property
    def unknown(self) -> Collection[str]:
        """The names of fields that OpenAI's API does not have."""
        fields = self.content.fields if isinstance(self.content, PassedForm) else self.content
        return fields.keys() - _FIELDS


@dataclass(frozen=True, slots=True)
class PassedCall:
    """The call to one target."""

    sent: UpstreamRequest
    emulated: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()

    @property
    def calls(self) -> tuple[UpstreamRequest, ...]:
        """The only call."""
        return (self.sent,)

    @property
    def target(self) -> Target:
        """The target of the call."""
        return self.sent.target

    @property
    def max_tokens(self) -> None:
        """Always `None`, because these tasks have no token limit."""
        return None


def pass_on(request: PassedRequest, target: Target) -> PassedCall:
    """Return the call to a target. Raises Refusal if the vendor does not have the task, and for a field that would
    change a decision of the gateway, or that names a host, a path or code to an engine."""
    profile = target.version_profile
    wire = profile.for_model(*target.model_names).tasks.get(request.task)
    if wire is None:
        message = f"{target.name} takes no requests for {_TASK_LABELS[request.task]}."
        raise Refusal("model", message)
    url, content = endpoint_url(target, profile, wire.path), request.content
    overruled = check_headers(request.extra_headers, target) if request.extra_headers else ()
    if isinstance(content, PassedForm):
        _check(_each(content.fields), target)
        return PassedCall(
            UpstreamRequest(
                *(target, request.task, url, b"", request.stream),
                content_type=content.content_type,
                upload=content.with_model(target.upstream_model),
            )
        )
    left_out = [name for name in content if is_left_out(name, target.permits.fields)]
    if left_out:
        content = {name: value for name, value in content.items() if name not in left_out}
    body_fields = merged(content, request.extra_params) if request.extra_params else content
    _check(body_fields.items(), target)
    body = orjson.dumps({**body_fields, "model": target.upstream_model})
    sent = UpstreamRequest(target, request.task, url, body, request.stream, request.extra_headers or {})
    dropped = [*shown_names(left_out, MOST_REPORTED), *(["inference_extra_headers"] if overruled else ())]
    return PassedCall(sent, dropped=tuple(dropped))


def _check(body_fields: Iterable[tuple[str, JsonValue]], target: Target) -> None:
    search = Search(target.permits.fields) if target.is_engine else None
    for name, value in body_fields:
        if name in _FIELDS and isinstance(value, str):
            continue
        reserved = name not in _FIELDS and (is_reserved(name) or is_credential(name))
        if reserved or find_reserved(name, value) is not None:
            raise Refusal(name, f"'{name}' is not sent to {target.name}: it would change where the request goes.")
        if search is not None and (found := search.find(name, value)) is not None:
            raise Refusal(name, f"'{name}' is not sent to {target.name}: {found.why}.")


def _each(fields: Mapping[str, JsonValue]) -> Iterator[tuple[str, JsonValue]]:
    """Yield the fields of a form. Several fields of one name are yielded one by one."""
    for name, value in fields.items():
        if isinstance(value, list):
            yield from ((name, each) for each in value)
        else:
            yield name, value
