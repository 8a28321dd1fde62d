"""Requests that go on as they came, but for the model's name: moderations, transcriptions, speech, images.

Vendors have OpenAI's own paths for them, so that there is nothing to translate. Sources: OpenAI OpenAPI 2.3.0
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
from providers.tasks.task_draft import MOST_NAMED
from providers.unified_request import Task

_TASKS: Final[Mapping[Task, str]] = {
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
"""Fields that OpenAI's API has for these tasks: texts, numbers and words, which name nothing for a server to fetch."""


@dataclass(frozen=True, slots=True)
class PassedForm:
    """A form in store: the texts of its fields (a list of those of one name), its content type, and the form with a
    model's name."""

    fields: Mapping[str, JsonValue]
    content_type: str
    with_model: Callable[[str], Upload] = field(repr=False)


@dataclass(frozen=True, slots=True)
class PassedRequest:
    """A request to pass on. `content` is its JSON body, or its form; both still have the client's model, or none, and
    no fields of the gateway's own. `extra_params` and `extra_headers` are the client's `inference_extra_params` and
    `inference_extra_headers`."""

    task: Task
    model: str
    content: JsonObject | PassedForm
    stream: bool = False
    timeout: float | None = None
    extra_params: JsonObject | None = None
    extra_headers: Mapping[str, str] | None = None

    @property
    def passes_unknown(self) -> bool:
        """Always: nothing of it is known to the gateway but the model."""
        return True

    @property
    def user(self) -> str | None:
        """The end user whom the client names."""
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
    """The call of one target."""

    sent: UpstreamRequest
    emulated: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()

    @property
    def calls(self) -> tuple[UpstreamRequest, ...]:
        """The call alone."""
        return (self.sent,)

    @property
    def target(self) -> Target:
        """The target."""
        return self.sent.target

    @property
    def max_tokens(self) -> None:
        """`None`: a task has no limit."""
        return None


def pass_on(request: PassedRequest, target: Target) -> PassedCall:
    """Return the call of a target. Raises Refusal where the vendor has no such task, and for a member that would change
    a decision of the gateway, or that names a host, a path or code to an engine."""
    profile = target.version_profile
    wire = profile.for_model(*target.model_names).tasks.get(request.task)
    if wire is None:
        message = f"{target.name} takes no requests for {_TASKS[request.task]}."
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
    members = merged(content, request.extra_params) if request.extra_params else content
    _check(members.items(), target)
    body = orjson.dumps({**members, "model": target.upstream_model})
    sent = UpstreamRequest(target, request.task, url, body, request.stream, request.extra_headers or {})
    dropped = [*shown_names(left_out, MOST_NAMED), *(["inference_extra_headers"] if overruled else ())]
    return PassedCall(sent, dropped=tuple(dropped))


def _check(members: Iterable[tuple[str, JsonValue]], target: Target) -> None:
    search = Search(target.permits.fields) if target.is_engine else None
    for name, value in members:
        if name in _FIELDS and isinstance(value, str):
            continue
        reserved = name not in _FIELDS and (is_reserved(name) or is_credential(name))
        if reserved or find_reserved(name, value) is not None:
            raise Refusal(name, f"'{name}' is not sent to {target.name}: it would change where the request goes.")
        if search is not None and (found := search.find(name, value)) is not None:
            raise Refusal(name, f"'{name}' is not sent to {target.name}: {found.why}.")


def _each(fields: Mapping[str, JsonValue]) -> Iterator[tuple[str, JsonValue]]:
    """Yield the fields of a form, those of one name one by one."""
    for name, value in fields.items():
        if isinstance(value, list):
            yield from ((name, each) for each in value)
        else:
            yield name, value
