"""What all calls of one task request on one target share: profile, wire, and the members under the vendor's names."""

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
"""The most bytes of all calls of one request together: four times the largest body that a client can send."""

_EXTRA = "inference_extra_params"

_PLAIN_NAME = re.compile(r"[\w.-]{1,64}", re.ASCII)
MOST_NAMED = 20

_PERMISSIONS: Mapping[str, str] = {"truncate": "none"}
"""Fields by which the client permits something, with the value that permits nothing. Their values are ours alone."""


class TaskRequest(Protocol):
    """What the requests of all tasks have in common."""

    @property
    def unknown(self) -> Mapping[str, JsonValue] | None:
        """The fields outside those that the gateway knows."""

    @property
    def extra_params(self) -> Mapping[str, JsonValue] | None:
        """The client's `inference_extra_params`."""

    @property
    def extra_headers(self) -> Mapping[str, str] | None:
        """The client's `inference_extra_headers`."""


@dataclass(slots=True)
class TaskDraft:
    """The calls of one request on one target while they are written.

    `members` are the request's optional fields under the vendor's names, beside the inputs; `extra` is merged last.
    `emulated` and `dropped` are as in UpstreamRequest.
    """

    task: Task
    target: Target
    profile: Profile
    wire: TaskWire
    members: JsonObject
    extra: Mapping[str, JsonValue] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    emulated: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)

    def put(self, name: str, value: JsonValue) -> None:
        """Write a field under the vendor's name for it and with the vendor's word; a dot leads into an object. A
        permission that has no word is left out, and the vendor told to do without it where it has a word for that."""
        words = self.wire.words.get(name)
        if words is not None and isinstance(value, str):
            if name in _PERMISSIONS and value not in words:
                self.dropped.append(name)
                if (value := _PERMISSIONS[name]) not in words:
                    return
            value = words.get(value, value)
        *outer, last = self.wire.rename.get(name, name).split(".")
        holder = self.members
        for step in outer:
            inner = holder.get(step)
            # Copied on the way: a profile's own members belong to every request.
            holder[step] = inner = {**inner} if isinstance(inner, dict) else {}
            holder = inner
        holder[last] = value

    def leave_out(self, name: str) -> None:
        """Note a member of the client's that is left out; `unknown` stands for one whose name is no plain word, and for
        all that are too many for a header."""
        shown = name if _PLAIN_NAME.fullmatch(name) and len(self.dropped) < MOST_NAMED else "unknown"
        if shown not in self.dropped:
            self.dropped.append(shown)

    def unsupported(self, name: str, reason: str) -> Refusal:
        """Return the refusal of a field."""
        return Refusal(name, f"'{name}' is not supported by {self.target.name}: {reason}.")


def begin_draft(
    task: Task, request: TaskRequest, wanted: Mapping[str, JsonValue], target: Target, on_unsupported: OnUnsupported
) -> TaskDraft:
    """Return a draft with the `wanted` fields of a request and those that the gateway does not know.

    Raises Refusal for the first one that the target cannot honour, unless it may be left out.
    """
    profile = profile_of(target)
    wire = profile.tasks.get(task)
    if wire is None:
        raise Refusal("model", f"{target.name} cannot be asked for {task}: {no_task(task).how}.")
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
        if name.lower() in PROTECTED or (name in draft.members and name not in draft.wire.body):
            message = f"'{name}' goes to {draft.target.name} for another field of the request already."
            raise Refusal(name, message, "conflicting_parameters")
        _check_member(draft, search, name, name, value)
        draft.members[name] = value


def _check_extra(draft: TaskDraft) -> None:
    search = Search(draft.target.permits.fields)
    for name, value in draft.extra.items():
        if name.lower() in PROTECTED:
            raise Refusal(_EXTRA, f"'{_EXTRA}' may not set '{name}' on {draft.target.name}.", "invalid_value")
        _check_member(draft, search, f"{_EXTRA}.{name}", name, value)


def _check_member(draft: TaskDraft, search: Search, path: str, name: str, value: JsonValue) -> None:
    """Raise Refusal for a member that names a host, a path or code to an engine, unless the table allows it."""
    found = search.find(name, value) if draft.target.is_engine else None
    if found is not None:
        inner = next((step for step in reversed(found.place) if isinstance(step, str)), name)
        how = f"`allow_fields: [{inner}]` in the config file would allow it"
        shown = f"{path}{path_text(found.place)}"
        raise Refusal(path, f"'{shown}' is not sent to {draft.target.name}: {found.why}; {how}.")


def make_calls(
    draft: TaskDraft, url: str, bodies: Iterable[JsonObject], headers: Mapping[str, str] | None = None
) -> tuple[UpstreamRequest, ...]:
    """Return a call for each body. Raises Refusal where they are too large together."""
    return tuple(_bounded(draft, url, bodies, {**(headers or {}), **draft.headers}))


def _bounded(
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
    """Return the profile as it holds for the target's version of the API and its model."""
    return _profile_for(target.profile, target.api_version, *target.model_names)


@lru_cache(maxsize=4096)
def _profile_for(whole: Profile, version: str | None, *names: str) -> Profile:
    return whole.for_version(version or whole.api_version).for_model(*names)


def base_of(target: Target) -> str:
    """Return the target's base URL, with the host of its location where Vertex AI has one of another form."""
    return resolve_host(target.base_url)


def path_with_model(path: str, model: str) -> str:
    """Return a path with the model's name in its place, one segment of the URL."""
    return path.replace("{model}", quote(model, safe="@"))
