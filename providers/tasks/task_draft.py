"""The draft of a task request's calls on one target: profile, wire settings, and the fields under the vendor's
names."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol
from urllib.parse import quote

import orjson

from providers.client_extras.engine_members import path_text
from providers.client_extras.extra_headers import check_headers
from providers.client_extras.hosts_paths_and_code import Search
from providers.client_extras.proxy_instructions import is_left_out
from providers.dialect import UpstreamRequest
from providers.dialects.platforms.vertex_address import resolve_host
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue, merged
from providers.profile import Profile, TaskWire
from providers.target import OnUnsupported, Target
from providers.tasks.task_fields import PROTECTED, TASK_FIELDS, TOKENS, no_task, task_cells
from providers.unified_request import Task

MAX_BYTES = 128 * 2**20
"""The most bytes of all calls of one request together, which is four times the largest body that a client can send."""

_EXTRA = "inference_extra_params"

_PLAIN_NAME = re.compile(r"[\w.-]{1,64}", re.ASCII)
MOST_REPORTED = 20

_PERMISSIONS: Mapping[str, str] = {"truncate": "none"}
"""Fields by which the client permits the vendor to do something, each with the value that permits nothing. Their values
are the gateway's own words."""


class TaskRequest(Protocol):
    """The fields that the requests of all tasks have in common."""

    @property
    def unknown(self) -> Mapping[str, JsonValue] | None:
        """The fields that the gateway does not know."""

    @property
    def extra_params(self) -> Mapping[str, JsonValue] | None:
        """The client's `inference_extra_params`."""

    @property
    def extra_headers(self) -> Mapping[str, str] | None:
        """The client's `inference_extra_headers`."""


@dataclass(slots=True)
class TaskDraft:
    """The calls of one request on one target while they are written.

    `optional_fields` are the request's optional fields under the vendor's names, without the inputs. `extra` is merged
    over the body at the end. `emulated` and `dropped` are as in UpstreamRequest.
    """

    task: Task
    target: Target
    profile: Profile
    wire: TaskWire
    optional_fields: JsonObject
    extra: Mapping[str, JsonValue] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    emulated: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)

    def put(self, name: str, value: JsonValue) -> None:
        """Write a field under the vendor's name and with the vendor's word for its value. A dot in the name leads into
        an object. If the vendor has no word for a permission, the permission is dropped, and the value that permits
        nothing is sent if the vendor has a word for that."""
        words = self.wire.words.get(name)
        if words is not None and isinstance(value, str):
            if name in _PERMISSIONS and value not in words:
                self.dropped.append(name)
                if (value := _PERMISSIONS[name]) not in words:
                    return
            value = words.get(value, value)
        *outer, last = self.wire.rename.get(name, name).split(".")
        holder = self.optional_fields
        for step in outer:
            inner = holder.get(step)
            # Nested objects are copied, because a profile's own fields are shared by all requests.
            holder[step] = inner = {**inner} if isinstance(inner, dict) else {}
            holder = inner
        holder[last] = value

    def leave_out(self, name: str) -> None:
        """Record a client's field that is left out. `unknown` stands for a field whose name is not a plain word, and
        for all fields beyond the number that fits into a header."""
        shown = name if _PLAIN_NAME.fullmatch(name) and len(self.dropped) < MOST_REPORTED else "unknown"
        if shown not in self.dropped:
            self.dropped.append(shown)

    def unsupported(self, name: str, reason: str) -> Refusal:
        """Return the refusal of a field that the target does not support."""
        return Refusal(name, f"'{name}' is not supported by {self.target.name}: {reason}.")


def begin_draft(
    task: Task, request: TaskRequest, wanted: Mapping[str, JsonValue], target: Target, on_unsupported: OnUnsupported
) -> TaskDraft:
    """Return a draft with the `wanted` fields of a request and the fields that the gateway does not know.

    Raises Refusal for the first field that the target cannot honour, unless it may be left out.
    """
    profile = profile_of(target)
    wire = profile.tasks.get(task)
    if wire is None:
        raise Refusal("model", f"{target.name} does not support {task}: {no_task(task).how}.")
    overruled = check_headers(request.extra_headers, target) if request.extra_headers else ()
    draft = TaskDraft(task, target, profile, wire, {**wire.body}, request.extra_params or {})
    draft.headers = {name: value for name, value in (request.extra_headers or {}).items() if name not in overruled}
    draft.dropped += overruled
    _check_extra(draft)
    _put_fields(draft, wanted, on_unsupported)
    _put_unknown(draft, request.unknown or {}, on_unsupported)
    return draft


def _put_fields(draft: TaskDraft, wanted: Mapping[str, JsonValue], on_unsupported: OnUnsupported) -> None:
    cells = task_cells(draft.profile, draft.task)
    classes = TASK_FIELDS[draft.task]
    for name, value in wanted.items():
        cell = cells[name]
        if cell.native:
            if name != TOKENS:
                draft.put(name, value)
        elif cell.emulated:
            draft.emulated.append(name)
        elif cell.left_out or (classes[name] == "steering" and on_unsupported == "drop"):
            draft.dropped.append(name)
        else:
            raise draft.unsupported(name.partition(".")[0], cell.how)


def _put_unknown(draft: TaskDraft, unknown: Mapping[str, JsonValue], on_unsupported: OnUnsupported) -> None:
    search = Search(draft.target.permits.fields)
    cell = task_cells(draft.profile, draft.task)["unknown"]
    for name, value in unknown.items():
        if is_left_out(name, draft.target.permits.fields):
            draft.leave_out(name)
            continue
        if name not in draft.wire.passes and cell.refused:
            if on_unsupported == "drop":
                draft.leave_out(name)
                continue
            raise draft.unsupported(name, cell.how)
        if name.lower() in PROTECTED or (name in draft.optional_fields and name not in draft.wire.body):
            message = f"'{name}' is already sent to {draft.target.name} for another field of the request."
            raise Refusal(name, message, "conflicting_parameters")
        _check_field(draft, search, name, name, value)
        draft.optional_fields[name] = value


def _check_extra(draft: TaskDraft) -> None:
    search = Search(draft.target.permits.fields)
    for name, value in draft.extra.items():
        if name.lower() in PROTECTED:
            raise Refusal(_EXTRA, f"'{_EXTRA}' may not set '{name}' on {draft.target.name}.", "invalid_value")
        _check_field(draft, search, f"{_EXTRA}.{name}", name, value)


def _check_field(draft: TaskDraft, search: Search, path: str, name: str, value: JsonValue) -> None:
    """Raise Refusal for a field that names a host, a path or code to an engine, unless the configuration allows the
    field."""
    found = search.find(name, value) if draft.target.is_engine else None
    if found is not None:
        inner = next((step for step in reversed(found.place) if isinstance(step, str)), name)
        how = f"`allow_fields: [{inner}]` in the configuration would allow it"
        shown = f"{path}{path_text(found.place)}"
        raise Refusal(path, f"'{shown}' is not sent to {draft.target.name}: {found.why}; {how}.")


def make_calls(
    draft: TaskDraft, url: str, bodies: Iterable[JsonObject], headers: Mapping[str, str] | None = None
) -> tuple[UpstreamRequest, ...]:
    """Return a call for each body. Raises Refusal if the calls together are too large."""
    return tuple(_size_checked(draft, url, bodies, {**(headers or {}), **draft.headers}))


def _size_checked(
    draft: TaskDraft, url: str, bodies: Iterable[JsonObject], headers: Mapping[str, str]
) -> Iterator[UpstreamRequest]:
    size = 0
    for body in bodies:
        data = orjson.dumps(merged(body, dict(draft.extra)) if draft.extra else body)
        size += len(data)
        if size > MAX_BYTES:
            message = f"The calls of this request to {draft.target.name} would have more than {MAX_BYTES} bytes."
            raise Refusal("input", message, "invalid_value")
        yield UpstreamRequest(draft.target, draft.task, url, data, stream=False, headers=headers)


def profile_of(target: Target) -> Profile:
    """Return the profile with its settings for the target's API version and model."""
    return _profile_for(target.profile, target.api_version, *target.model_names)


@lru_cache(maxsize=4096)
def _profile_for(whole: Profile, version: str | None, *names: str) -> Profile:
    return whole.for_version(version or whole.api_version).for_model(*names)


def base_of(target: Target) -> str:
    """Return the target's base URL. For some locations of Vertex AI its host is replaced by the location's own host."""
    return resolve_host(target.base_url)


def path_with_model(path: str, model: str) -> str:
    """Return a path with `{model}` replaced by the model's name, escaped as one segment of the URL."""
    return path.replace("{model}", quote(model, safe="@"))
