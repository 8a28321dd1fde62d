"""Whole answers of the Responses API in the common completion shape, and the parts that streams share.

Encrypted reasoning becomes a detail of reasoning in OpenRouter's form, with its place in the turn. Annotations get the
form that they have in chats.

Sources: `openai` 3.54.0 types `Response`, `ResponseOutputItem`, `ResponseUsage`, `ResponseError`, November 2026.
"""

from collections.abc import Mapping
from dataclasses import replace

from providers.completion import (
    SEARCH_REQUESTS,
    Choice,
    Completion,
    ContentLogprobs,
    Extras,
    FinishReason,
    TokenLogprob,
    ToolCall,
    Usage,
    billed_tier,
    count_of,
    reported_searches,
    reported_usage,
)
from providers.conversation import AFTER
from providers.dialect import UpstreamRequest
from providers.dialects.shared.custom_tools import complete_call
from providers.dialects.shared.errors import failure_in_body
from providers.dialects.shared.finish_reasons import vendor_finish_reason
from providers.dialects.shared.read_json import arguments_text, json_object, malformed, unknown_in, unwrap_answer
from providers.dialects.shared.read_logprobs import logprobs_of, objects_in
from providers.failure import OUR_WORDS, Failure, FailureKind, UpstreamError
from providers.json_types import JsonObject, JsonValue
from providers.profile import Profile

PHASE = "phase"
"""The field of a message with its kind, a comment or the answer."""

SEARCH_CALL, SEARCHES = "web_search_call", "web_search_calls"
"""The type of an item that is a search of the web, and the field of a message that lists them."""

PART_GAP = "\n\n"
"""What stands between two parts of what the model thought."""

_CODES: Mapping[str, FailureKind] = {
    "server_error": FailureKind.SERVER,
    "server_is_overloaded": FailureKind.OVERLOADED,
    "slow_down": FailureKind.OVERLOADED,
    "vector_store_timeout": FailureKind.TIMEOUT,
    # Of an account of ChatGPT, whose limits last for hours.
    **dict.fromkeys(("usage_limit_reached", "usage_not_included"), FailureKind.QUOTA),
    **dict.fromkeys(
        ("bio_policy", "cyber_policy", "misalignment_policy_violation", "image_content_policy_violation"),
        FailureKind.CONTENT_FILTER,
    ),
    **dict.fromkeys(
        (
            *("invalid_prompt", "data_residency_mismatch", "invalid_image", "invalid_image_format"),
            *("invalid_base64_image", "invalid_image_url", "image_too_large", "image_too_small", "image_parse_error"),
            *("invalid_image_mode", "image_file_too_large", "unsupported_image_media_type", "empty_image_file"),
            *("failed_to_download_image", "image_file_not_found", "invalid_encrypted_content"),
        ),
        FailureKind.INVALID_REQUEST,
    ),
}
"""Codes of failed responses that OpenAI's other answers do not have."""

_BROKEN = ("failed", "cancelled")
"""Statuses of a response that has no answer."""

_INVALID = "invalid_request_error"
"""The type of errors about the request, of which some have no code."""

_INCOMPLETE: Mapping[str, FinishReason] = {
    "max_output_tokens": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
}


_FINISHED = ("completed", "requires_action")
"""The statuses of a response that ended by itself. The second is Perplexity's for one that calls functions."""


def decode_response(sent: UpstreamRequest, body: bytes) -> Completion:
    """Decode a whole 2xx body. Raises UpstreamError."""
    response = json_object(body)
    completion = read_response(sent.target.profile, response)
    return replace(completion, native=body)


def decode_translated(sent: UpstreamRequest, body: bytes) -> Completion:
    """Decode the body of a non-streaming 2xx response for a client of another API. Raises UpstreamError."""
    completion = read_response(sent.target.profile, json_object(body))
    (choice,) = completion.choices
    text = choice.text
    if sent.unwrap_choice and choice.finish_reason == "stop" and choice.refusal is None:
        text = unwrap_answer(text)
    calls = [replace(call, name=sent.tool_names.get(call.name, call.name)) for call in choice.tool_calls]
    shown = tuple([complete_call(call, sent.custom_tools) for call in calls])
    return replace(completion, choices=(replace(choice, text=text, tool_calls=shown),))


def read_response(profile: Profile, response: JsonObject) -> Completion:
    """Return what a finished response says. Raises UpstreamError for one that failed or is not finished."""
    check_response(profile, response)
    output = response.get("output")
    if not isinstance(output, list):
        raise malformed("has no output")
    parts = ResponseParts(format_of(profile))
    for item in output:
        parts.add(item)
    finish, native = finish_of(response, bool(parts.calls))
    choice = Choice(
        index=0,
        text="".join(parts.texts) or "".join(parts.refusals),
        finish_reason=finish,
        native_finish_reason=native,
        logprobs=ContentLogprobs(tuple(parts.logprobs)) if parts.logprobs else None,
        refusal="".join(parts.refusals) or None,
        reasoning=PART_GAP.join(parts.thoughts) or None,
        tool_calls=tuple(parts.calls),
        extras=parts.extras(),
    )
    return Completion((choice,), usage_of(response), service_tier=tier_of(response))


class ResponseParts:
    """Collects the contents of an output's items; of the items of the vendor's own tools, searches alone have any.

    `form` is the format of the vendor's encrypted reasoning. `phase` is the vendor's word for the kind of the last
    message, a comment or the answer, which models expect back. `said` is the number of characters of the text, `called`
    of calls, and `thought` of details of reasoning so far.
    """

    __slots__ = (
        *("_form", "annotations", "called", "calls", "details", "logprobs", "refusals", "said", "texts", "thought"),
        *("phase", "searches", "thoughts"),
    )

    def __init__(self, form: str, said: int = 0, called: int = 0, thought: int = 0) -> None:
        self._form = form
        self.said, self.called, self.thought = said, called, thought
        self.texts: list[str] = []
        self.refusals: list[str] = []
        self.thoughts: list[str] = []
        self.calls: list[ToolCall] = []
        self.details: list[JsonObject] = []
        self.annotations: list[JsonObject] = []
        self.logprobs: list[TokenLogprob] = []
        self.searches: list[JsonValue] = []
        self.phase: str | None = None

    def extras(self) -> Extras | None:
        """Return the contents besides text, reasoning and calls; `None` if there are none."""
        message: JsonObject = {} if self.phase is None else {PHASE: self.phase}
        if self.searches:
            message[SEARCHES] = self.searches
        if not self.details and not self.annotations and not message:
            return None
        return Extras(tuple(self.details), tuple(self.annotations), message=message or None)

    def add(self, item: JsonValue) -> None:
        """Add an item. Raises UpstreamError for one that is not an object, and a call without id or name."""
        if not isinstance(item, dict):
            raise malformed("has an item that is not an object")
        kind = item.get("type")
        if kind == "message":
            for part in objects_in(item.get("content")):
                self._part(part)
            phase = item.get(PHASE)
            self.phase = phase if isinstance(phase, str) else None
        elif kind == "reasoning":
            thought = (part.get("text") for name in ("summary", "content") for part in objects_in(item.get(name)))
            self.thoughts += [text for text in thought if isinstance(text, str) and text]
            self._encrypted(item)
        elif kind == SEARCH_CALL and isinstance(item.get("action"), dict):
            self.searches.append(item)
        elif kind in RESULTS:
            self.searches += calls_of_results(item)
        elif (call := call_of(item)) is not None:
            self.calls.append(call)
            self.called += 1

    def _encrypted(self, item: JsonObject) -> None:
        data, identity = item.get("encrypted_content"), item.get("id")
        if not isinstance(data, str) or not data:
            return
        place: JsonObject = {AFTER: [self.said, self.called]} if self.said or self.called else {}
        known: JsonObject = {"id": identity} if isinstance(identity, str) else {}
        detail: JsonObject = {"type": "reasoning.encrypted", "data": data, "format": self._form, "index": self.thought}
        self.details.append({**detail, **known, **place})
        self.thought += 1

    def _part(self, part: JsonObject) -> None:
        match part:
            case {"type": "output_text", "text": str(text)}:
                self.annotations += [annotation_of(each, self.said) for each in objects_in(part.get("annotations"))]
                self.logprobs += tokens_in(part.get("logprobs"))
                self.texts.append(text)
                self.said += len(text)
            case {"type": "refusal", "refusal": str(words)}:
                self.refusals.append(words)
                self.said += len(words)
            case _:
                pass


RESULTS = ("search_results", "fetch_url_results")
"""The types of Perplexity's items for what its own tools found."""


def calls_of_results(item: JsonObject) -> list[JsonValue]:
    """Return what Perplexity's search found, or the pages that it fetched, as items of OpenAI's API; `results` holds
    the vendor's own entries. Source: "Create Agent Response" of Perplexity's API reference, `SearchResultsOutputItem`
    and `FetchUrlResultsOutputItem`, November 2026."""
    done: JsonObject = {"type": SEARCH_CALL, "status": "completed"}
    if item.get("type") == "fetch_url_results":
        pages = objects_in(item.get("contents"))
        return [{**done, "action": {"type": "open_page", "url": page.get("url")}, "results": [page]} for page in pages]
    results = objects_in(item.get("results"))
    found = [{"type": "url", "url": result.get("url"), "title": result.get("title")} for result in results]
    listed = item.get("queries")
    queries = [query for query in listed if isinstance(query, str)] if isinstance(listed, list) else []
    action: JsonObject = {"type": "search", "query": queries[0] if queries else "", "sources": [*found]}
    if len(queries) > 1:
        action["queries"] = [*queries]
    return [{**done, "action": action, "results": [*results]}]


def call_of(item: JsonObject) -> ToolCall | None:
    """Return the call that an item is; None for other items. Raises UpstreamError for one without id or name."""
    kind = item.get("type")
    if kind not in ("function_call", "custom_tool_call"):
        return None
    identity, name, space = item.get("call_id"), item.get("name"), item.get("namespace")
    if not isinstance(identity, str) or not isinstance(name, str):
        raise malformed("has a call without id or name")
    extra = {"namespace": space} if isinstance(space, str) else None
    if kind == "function_call":
        return ToolCall(identity, name, arguments_text(item.get("arguments")), extra=extra)
    return ToolCall(identity, name, arguments_text(item.get("input")), "custom", extra)


def format_of(profile: Profile) -> str:
    """Return the format of the vendor's encrypted reasoning."""
    return "" if profile.responses is None else profile.responses.format


def annotation_of(annotation: JsonObject, start: int) -> JsonObject:
    """Return an annotation of a text that begins at `start`, in the form that it has in chats."""
    kind = str(annotation.get("type"))
    held = {name: value for name, value in annotation.items() if name != "type"}
    for name in ("start_index", "end_index"):
        if isinstance(place := held.get(name), int):
            held[name] = place + start
    return {"type": kind, kind: held}


def tokens_in(listed: JsonValue) -> tuple[TokenLogprob, ...]:
    """Return the log probabilities of a text, or of a chunk of one."""
    found = logprobs_of({"content": listed}, "") if listed else None
    return found.content if isinstance(found, ContentLogprobs) else ()


def check_response(profile: Profile, response: JsonObject) -> None:
    """Raise UpstreamError for a response that failed, or an error in its place."""
    error = response.get("error")
    if isinstance(error, dict) or response.get("status") in _BROKEN:
        raise UpstreamError(failure_of(profile, error if isinstance(error, dict) else {}))


def failure_of(profile: Profile, error: JsonObject) -> Failure:
    """Return what the error of a failed response, or of a stream, means."""
    failure = failure_in_body(profile, {"error": {"message": "", **error}})
    code = error.get("code")
    kind = _CODES.get(code) if isinstance(code, str) else None
    if code is None and error.get("type") == _INVALID and failure.kind is FailureKind.SERVER:
        kind = FailureKind.INVALID_REQUEST
    if kind is None or failure.kind is FailureKind.CONTEXT_LENGTH:
        return failure
    if kind not in OUR_WORDS:
        own = code if kind is FailureKind.INVALID_REQUEST else failure.code
        return replace(failure, kind=kind, code=own if isinstance(own, str) else None)
    return replace(failure, kind=kind, message=OUR_WORDS[kind], said=failure.said or failure.message)


def finish_of(response: JsonObject, calls: bool) -> tuple[str, str | None]:
    """Return the common finish reason, and the vendor's own where it is more precise. Raises UpstreamError for a
    response that is not finished."""
    status = response.get("status")
    if status in _FINISHED:
        return "tool_calls" if calls else "stop", None
    if status != "incomplete":
        raise malformed("is a response that has not finished")
    details = response.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    if not isinstance(reason, str):
        raise malformed("does not say why it is incomplete")
    known = _INCOMPLETE.get(reason)
    return (vendor_finish_reason(reason), reason) if known is None else (known, None if known == reason else reason)


def tier_of(response: JsonObject) -> str | None:
    """Return the service tier of an answer."""
    tier = response.get("service_tier")
    return tier if isinstance(tier, str) else None


_READ_IN_USAGE = frozenset(
    {"input_tokens", "output_tokens", "total_tokens", "input_tokens_details", "output_tokens_details"}
)


def usage_of(response: JsonObject) -> Usage | None:
    """Return the counts of an answer; None where there are none. Searches are counted by the vendor (xAI) or else by
    their items; further fields keep their names."""
    raw = response.get("usage")
    if not isinstance(raw, dict):
        return None
    given, made = count_of(raw.get("input_tokens")), count_of(raw.get("output_tokens"))
    read, written = _counts(raw.get("input_tokens_details")), _counts(raw.get("output_tokens_details"))
    if searches := reported_searches(raw) or sum(map(_is_search, objects_in(response.get("output")))):
        written.setdefault(SEARCH_REQUESTS, searches)
    tier = billed_tier(response.get("service_tier"))
    return reported_usage(given, made, read, written, unknown_in(raw, _READ_IN_USAGE), tier)


def _is_search(item: JsonObject) -> bool:
    action = item.get("action")
    if item.get("type") == RESULTS[0]:
        return True
    return item.get("type") == SEARCH_CALL and isinstance(action, dict) and action.get("type") == "search"


def _counts(details: JsonValue) -> dict[str, int]:
    members = details.items() if isinstance(details, dict) else ()
    return {_COUNTS.get(name, name): count for name, value in members if (count := count_of(value)) is not None}


_COUNTS: Mapping[str, str] = {"cache_read_input_tokens": "cached_tokens"}
"""OpenAI's names of counts by Perplexity's."""
