"""A call that carries a client's own body of the Responses API. The gateway overwrites the fields that it decides on.

Nothing is stored at the vendor, so items that the client refers to later exist only in the gateway's own store.
Therefore the whole conversation is sent, without ids that only the vendor's store could resolve, and the vendor is
requested to return its models' reasoning in a form that can be sent back.

Sources: `openai` 3.54.0 type `ResponseCreateParams`; vercel/ai issue 7543 and langchain pull request 38372 for items
and `store: false`; pydantic-ai-slim 2.68.0 `profiles/openai` for encrypted reasoning, November 2026.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from providers.adaptation.file_data import fitting_file
from providers.adaptation.unique_call_ids import CallMark, bare_id, unique_ids
from providers.capabilities import Capabilities
from providers.dialect import UpstreamRequest
from providers.dialects.responses.input_items import CALL_ID, MAX_CALL_ID_LENGTH
from providers.dialects.responses.own_body import OwnSchemas, fit_settings
from providers.dialects.shared.request_body import RequestBody, finish_request
from providers.dialects.shared.tool_names import fit_call_id
from providers.json_types import JsonObject, JsonValue
from providers.profile import Profile, ResponsesWire
from providers.request_fields import PROTECTED_PARAMS
from providers.target import Target
from providers.unified_request import NativeApi, NativeRequest, Operation, UnifiedRequest

ENCRYPTED = "reasoning.encrypted_content"
"""The value of `include` that makes a model return its reasoning, so that the client can send it back."""

_EFFORT, _LIMIT = "reasoning_effort", "max_output_tokens"

PROTECTED = (
    *sorted(PROTECTED_PARAMS),
    *("input", "instructions", "store", "previous_response_id", "conversation", "background", "include"),
)
"""Fields that `inference_extra_params` may not set."""

_NOT_SENT = frozenset({"previous_response_id", "stream"})


def responses_request(request: UnifiedRequest) -> NativeRequest | None:
    """Return the client's own request if it is a request of the Responses API."""
    native = request.native
    return native if native is not None and native.api is NativeApi.RESPONSES else None


def encode_responses(
    request: UnifiedRequest, native: NativeRequest, target: Target, profile: Profile, table: Capabilities
) -> UpstreamRequest | None:
    """Return the call, or `None` if the vendor does not have the API or if only the gateway can honour all fields of
    the request. `profile` is the profile of the target's model. Raises Refusal."""
    wire = profile.responses
    if wire is None:
        return None
    body = {name: value for name, value in native.body.items() if name not in _NOT_SENT}
    draft = RequestBody(request, target, table, body)
    body.update(model=target.upstream_model, store=False)
    schemas = OwnSchemas(profile)
    schemas.fit(body)
    if schemas.unenforced:
        if request.losses is None or not request.losses.binding:
            return None
        draft.dropped += schemas.unenforced
    if isinstance(items := body.get("input"), list):
        body["input"] = items if _are_fitting(items) else _resolvable(_with_unique_ids(items), draft)
    _put_limit(draft)
    fit_settings(draft, profile)
    _put_reasoning(draft, profile, wire)
    if request.stream:
        body["stream"] = True
    return replace(finish_request(draft, Operation.CHAT, wire.path, PROTECTED), native=True)


def _put_limit(draft: RequestBody) -> None:
    """Write the token limit, which the gateway may have lowered to fit the context window."""
    limit = draft.params.get("max_tokens")
    if limit is not None and draft.body.get(_LIMIT) is not None:
        draft.body[_LIMIT] = limit


def _put_reasoning(draft: RequestBody, profile: Profile, wire: ResponsesWire) -> None:
    """Request the encrypted reasoning of a model that reasons, and write the model's word for the effort. For a model
    that does not reason, leave out the reasoning settings.

    The client knows the rules of the model it named, but not to which model the gateway routes the request. Raises
    Refusal for an effort that the model does not have.
    """
    body, target = draft.body, draft.target
    if _never_reasons(profile):
        _leave_out_reasoning(draft)
        return
    if reasons_at(wire, target) or body.get("reasoning"):
        body["include"] = _with_encrypted(body.get("include"))
    reasoning = body.get("reasoning")
    effort = reasoning.get("effort") if isinstance(reasoning, dict) else None
    word = effort_words(profile, wire).get(effort, effort) if isinstance(effort, str) else effort
    if isinstance(reasoning, dict) and word != effort:
        body["reasoning"] = {**reasoning, "effort": word}
        if effort in profile.nearest.get(_EFFORT, ()):
            draft.dropped.append(_EFFORT)


def effort_words(profile: Profile, wire: ResponsesWire) -> Mapping[str, str]:
    """Return the model's effort words by the client's, as far as they differ."""
    own = profile.words.get(_EFFORT, {})
    return {**{given: word for given, word in own.items() if isinstance(word, str)}, **wire.efforts}


def reasons_at(wire: ResponsesWire, target: Target) -> bool:
    """Return whether the target's model reasons, so that its reasoning may be requested."""
    return any(wire.reasoning.search(name) for name in target.model_names)


def _never_reasons(profile: Profile) -> bool:
    return _EFFORT not in profile.wires[Operation.CHAT].accepts


def _leave_out_reasoning(draft: RequestBody) -> None:
    if draft.params.get(_EFFORT) not in (None, "none", False):
        raise draft.unsupported(_EFFORT, "this model does not reason")
    if draft.body.pop("reasoning", None):
        draft.dropped.append("reasoning")
    include = draft.body.get("include")
    if isinstance(include, list) and ENCRYPTED in include:
        draft.dropped.append("include")
        draft.body["include"] = [each for each in include if each != ENCRYPTED]


def _with_encrypted(include: JsonValue) -> list[JsonValue]:
    given = include if isinstance(include, list) else []
    return given if ENCRYPTED in given else [*given, ENCRYPTED]


def _are_fitting(items: list[JsonValue]) -> bool:
    """Return whether a short check of each item shows that the vendor accepts all items. This is nearly always true."""
    calls: list[str] = []
    for item in items:
        if type(item) is not dict:
            return False
        kind = item.get("type")
        if "call_id" in item:
            identity = item["call_id"]
            if type(identity) is not str or len(identity) > MAX_CALL_ID_LENGTH:
                return False
            if kind not in _RESULT_TYPES:
                calls.append(identity)
        if kind == "reasoning" and not item.get("encrypted_content"):
            return False
        if "id" in item and item.get("role") == "assistant":
            return False
        parts = item.get("content") or item.get("output")
        for part in parts if type(parts) is list else ():
            if type(part) is dict and "file_data" in part:
                return False
    return _are_distinct(calls)


def _are_distinct(calls: list[str]) -> bool:
    # Two different ids may be equal without the signature after "__".
    bare = {bare_id(identity) for identity in calls} if "__" in "\0".join(calls) else {*calls}
    return len(bare) == len(calls)


_RESULT_TYPES: Final = ("function_call_output", "custom_tool_call_output")
"""The most common types of items that are results of calls."""


def _resolvable(items: list[JsonValue], draft: RequestBody) -> list[JsonValue]:
    """Return the items without the items and ids that only the vendor's store could resolve."""
    resolvable: list[JsonValue] = []
    for item in items:
        if not isinstance(item, dict):
            resolvable.append(item)
        elif item.get("type") == "reasoning" and not item.get("encrypted_content"):
            draft.dropped.append("reasoning")
        else:
            resolvable.append(
                _with_short_call_id(_without_id(item) if _is_model_message_with_id(item) else _with_files(item))
            )
    return resolvable


def _with_files(item: JsonObject) -> JsonObject:
    """Return an item whose files have a name and whose file data are data URLs. If there are no files, return the same
    object."""
    parts = item.get(name := "content")
    if parts is None:
        parts = item.get(name := "output")
    if not isinstance(parts, list):
        return item
    for part in parts:
        if isinstance(part, dict) and "file_data" in part:
            fitting: list[JsonValue] = [fitting_file(each) if isinstance(each, dict) else each for each in parts]
            return {**item, name: fitting}
    return item


def _with_unique_ids(items: list[JsonValue]) -> list[JsonValue]:
    """Return the items with unique call ids."""
    marks: list[CallMark] = []
    turn = 0
    for item in items:
        identity = _call_id(item)
        is_call = identity is not None and not _is_output(item)
        turn += not is_call
        if identity is not None:
            marks.append(CallMark(identity, turn, not is_call))
    ids = unique_ids(marks)
    if ids is None:
        return items
    new_ids = iter(ids)
    return [
        {**item, "call_id": next(new_ids)} if isinstance(item, dict) and _call_id(item) is not None else item
        for item in items
    ]


def _call_id(item: JsonValue) -> str | None:
    identity = item.get("call_id") if isinstance(item, dict) else None
    return identity if isinstance(identity, str) else None


def _is_output(item: JsonValue) -> bool:
    return isinstance(item, dict) and str(item.get("type")).endswith("_output")


def _with_short_call_id(item: JsonObject) -> JsonObject:
    """Return an item with a call id that the vendor accepts. Ids of other vendors that carry a signature are too long;
    a call and its result get the same new id."""
    identity = item.get("call_id")
    if not isinstance(identity, str) or len(identity) <= MAX_CALL_ID_LENGTH:
        return item
    return {**item, "call_id": fit_call_id(identity, CALL_ID)}


def _is_model_message_with_id(item: JsonObject) -> bool:
    """Return whether an item is a message of the model that carries its id."""
    return "id" in item and item.get("role") == "assistant"


def _without_id(item: Mapping[str, JsonValue]) -> JsonObject:
    return {name: value for name, value in item.items() if name != "id"}
