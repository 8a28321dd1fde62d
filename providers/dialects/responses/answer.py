"""Decoder of non-streaming responses of the Responses API into the common completion shape, with the parts that streams
share.

Encrypted reasoning becomes a reasoning detail in OpenRouter's form, with its position in the turn. Annotations are
written in the form of the chat API.

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
from providers.conversation import AFTER_KEY
from providers.dialect import UpstreamRequest
from providers.dialects.shared.custom_tools import complete_call
from providers.dialects.shared.errors import failure_in_body
from providers.dialects.shared.finish_reasons import vendor_finish_reason
from providers.dialects.shared.read_json import arguments_text, json_object, malformed, unknown_in, unwrap_answer
from providers.dialects.shared.read_logprobs import logprobs_of, objects_in
from providers.failure import GATEWAY_MESSAGES, Failure, FailureKind, UpstreamError
from providers.json_types import JsonObject, JsonValue
from providers.profile import Profile

PHASE = "phase"
"""The field of a message with its kind, which is a commentary or the final answer."""

SEARCH_CALL, SEARCHES = "web_search_call", "web_search_calls"
"""The type of an item that is a web search, and the field of a message that lists such items."""

PART_SEPARATOR = "\n\n"
"""The text that is put between two parts of the reasoning."""

_CODES: Mapping[str, FailureKind] = {
    "server_error": FailureKind.SERVER,
    "server_is_overloaded": FailureKind.OVERLOADED,
    "slow_down": FailureKind.OVERLOADED,
    "vector_store_timeout": FailureKind.TIMEOUT,
    # Codes of limits of ChatGPT accounts. These limits last for hours.
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
"""Codes of failed responses that OpenAI's other APIs do not have."""

_FAILED_STATUSES = ("failed", "cancelled")
"""Statuses of a response without output."""

_INVALID_TYPE = "invalid_request_error"
"""The type of errors about the request. Some of these errors have no code."""

_INCOMPLETE_REASONS: Mapping[str, FinishReason] = {
    "max_output_tokens": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
}


_FINISHED_STATUSES = ("completed", "requires_action")
"""The statuses of a response that ended normally. The second is Perplexity's status of a response with function
calls."""


def decode_response(sent: UpstreamRequest, body: bytes) -> Completion:
    """Decode a complete 2xx body. Raises UpstreamError."""
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
    client_calls = tuple([complete_call(call, sent.custom_tools) for call in calls])
    return replace(completion, choices=(replace(choice, text=text, tool_calls=client_calls),))


def read_response(profile: Profile, response: JsonObject) -> Completion:
    """Return the contents of a finished response. Raises UpstreamError for a response that failed or is not
    finished."""
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
        reasoning=PART_SEPARATOR.join(parts.reasoning_texts) or None,
        tool_calls=tuple(parts.calls),
        extras=parts.extras(),
    )
    return Completion((choice,), usage_of(response), service_tier=tier_of(response))


class ResponseParts:
    """The contents of an output's items. Items of the vendor's own tools have no contents, except searches.

    `form` is the format of the vendor's encrypted reasoning. `phase` is the vendor's word for the kind of the last
    message (commentary or final answer). Models expect it back in the next turn. `characters`, `call_count` and
    `detail_count` count the characters of the text, the calls and the reasoning details so far.
    """

    __slots__ = (
        *(
            "_form",
            "annotations",
            "call_count",
            "calls",
            "details",
            "logprobs",
            "refusals",
            "characters",
            "texts",
            "detail_count",
        ),
        *("phase", "searches", "reasoning_texts"),
    )

    def __init__(self, form: str, characters: int = 0, call_count: int = 0, detail_count: int = 0) -> None:
        self._form = form
        self.characters, self.call_count, self.detail_count = characters, call_count, detail_count
        self.texts: list[str] = []
        self.refusals: list[str] = []
        self.reasoning_texts: list[str] = []
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
        """Add an item. Raises UpstreamError for an item that is not an object, and for a call without id or name."""
        if not isinstance(item, dict):
            raise malformed("has an item that is not an object")
        kind = item.get("type")
        if kind == "message":
            for part in objects_in(item.get("content")):
                self._add_part(part)
            phase = item.get(PHASE)
            self.phase = phase if isinstance(phase, str) else None
        elif kind == "reasoning":
            texts = (part.get("text") for name in ("summary", "content") for part in objects_in(item.get(name)))
            self.reasoning_texts += [text for text in texts if isinstance(text, str) and text]
            self._add_encrypted(item)
        elif kind == SEARCH_CALL and isinstance(item.get("action"), dict):
            self.searches.append(item)
        elif kind in RESULT_TYPES:
            self.searches += search_items(item)
        elif (call := call_of(item)) is not None:
            self.calls.append(call)
            self.call_count += 1

    def _add_encrypted(self, item: JsonObject) -> None:
        data, identity = item.get("encrypted_content"), item.get("id")
        if not isinstance(data, str) or not data:
            return
        position: JsonObject = (
            {AFTER_KEY: [self.characters, self.call_count]} if self.characters or self.call_count else {}
        )
        id_field: JsonObject = {"id": identity} if isinstance(identity, str) else {}
        detail: JsonObject = {
            "type": "reasoning.encrypted",
            "data": data,
            "format": self._form,
            "index": self.detail_count,
        }
        self.details.append({**detail, **id_field, **position})
        self.detail_count += 1

    def _add_part(self, part: JsonObject) -> None:
        match part:
            case {"type": "output_text", "text": str(text)}:
                self.annotations += [
                    annotation_of(each, self.characters) for each in objects_in(part.get("annotations"))
                ]
                self.logprobs += tokens_in(part.get("logprobs"))
                self.texts.append(text)
                self.characters += len(text)
            case {"type": "refusal", "refusal": str(words)}:
                self.refusals.append(words)
                self.characters += len(words)
            case _:
                pass


RESULT_TYPES = ("search_results", "fetch_url_results")
"""The types of Perplexity's items for the results of its own tools."""


def search_items(item: JsonObject) -> list[JsonValue]:
    """Return the results of Perplexity's search, or the pages that it fetched, as items of OpenAI's API. `results`
    holds the vendor's own entries. Source: "Create Agent Response" of Perplexity's API reference,
    `SearchResultsOutputItem` and `FetchUrlResultsOutputItem`, November 2026."""
    base: JsonObject = {"type": SEARCH_CALL, "status": "completed"}
    if item.get("type") == "fetch_url_results":
        pages = objects_in(item.get("contents"))
        return [{**base, "action": {"type": "open_page", "url": page.get("url")}, "results": [page]} for page in pages]
    results = objects_in(item.get("results"))
    sources = [{"type": "url", "url": result.get("url"), "title": result.get("title")} for result in results]
    listed = item.get("queries")
    queries = [query for query in listed if isinstance(query, str)] if isinstance(listed, list) else []
    action: JsonObject = {"type": "search", "query": queries[0] if queries else "", "sources": [*sources]}
    if len(queries) > 1:
        action["queries"] = [*queries]
    return [{**base, "action": action, "results": [*results]}]


def call_of(item: JsonObject) -> ToolCall | None:
    """Return the tool call in an item, or `None` for other items. Raises UpstreamError for a call without id or
    name."""
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
    """Return an annotation of a text that begins at `start`, in the form of the chat API."""
    kind = str(annotation.get("type"))
    fields = {name: value for name, value in annotation.items() if name != "type"}
    for name in ("start_index", "end_index"):
        if isinstance(offset := fields.get(name), int):
            fields[name] = offset + start
    return {"type": kind, kind: fields}


def tokens_in(token_list: JsonValue) -> tuple[TokenLogprob, ...]:
    """Return the log probabilities of a text, or of a chunk of a text."""
    logprobs = logprobs_of({"content": token_list}, "") if token_list else None
    return logprobs.content if isinstance(logprobs, ContentLogprobs) else ()


def check_response(profile: Profile, response: JsonObject) -> None:
    """Raise UpstreamError for a response that failed, or that holds an error."""
    error = response.get("error")
    if isinstance(error, dict) or response.get("status") in _FAILED_STATUSES:
        raise UpstreamError(failure_of(profile, error if isinstance(error, dict) else {}))


def failure_of(profile: Profile, error: JsonObject) -> Failure:
    """Return the failure that the error of a response or a stream means."""
    failure = failure_in_body(profile, {"error": {"message": "", **error}})
    code = error.get("code")
    kind = _CODES.get(code) if isinstance(code, str) else None
    if code is None and error.get("type") == _INVALID_TYPE and failure.kind is FailureKind.SERVER:
        kind = FailureKind.INVALID_REQUEST
    if kind is None or failure.kind is FailureKind.CONTEXT_LENGTH:
        return failure
    if kind not in GATEWAY_MESSAGES:
        client_code = code if kind is FailureKind.INVALID_REQUEST else failure.code
        return replace(failure, kind=kind, code=client_code if isinstance(client_code, str) else None)
    return replace(failure, kind=kind, message=GATEWAY_MESSAGES[kind], said=failure.said or failure.message)


def finish_of(response: JsonObject, calls: bool) -> tuple[str, str | None]:
    """Return the common finish reason, and the vendor's own reason if it is more precise. Raises UpstreamError for a
    response that is not finished."""
    status = response.get("status")
    if status in _FINISHED_STATUSES:
        return "tool_calls" if calls else "stop", None
    if status != "incomplete":
        raise malformed("is a response that has not finished")
    details = response.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    if not isinstance(reason, str):
        raise malformed("has no reason why it is incomplete")
    common = _INCOMPLETE_REASONS.get(reason)
    return (vendor_finish_reason(reason), reason) if common is None else (common, None if common == reason else reason)


def tier_of(response: JsonObject) -> str | None:
    """Return the service tier of a response."""
    tier = response.get("service_tier")
    return tier if isinstance(tier, str) else None


_KNOWN_USAGE_FIELDS = frozenset(
    {"input_tokens", "output_tokens", "total_tokens", "input_tokens_details", "output_tokens_details"}
)


def usage_of(response: JsonObject) -> Usage | None:
    """Return the token counts of a response; `None` if there are none.

    The number of searches is the vendor's count (xAI), otherwise the number of search items. Further fields keep their
    names.
    """
    raw = response.get("usage")
    if not isinstance(raw, dict):
        return None
    prompt, completion = count_of(raw.get("input_tokens")), count_of(raw.get("output_tokens"))
    prompt_details, completion_details = (
        _counts(raw.get("input_tokens_details")),
        _counts(raw.get("output_tokens_details")),
    )
    if searches := reported_searches(raw) or sum(map(_is_search, objects_in(response.get("output")))):
        completion_details.setdefault(SEARCH_REQUESTS, searches)
    tier = billed_tier(response.get("service_tier"))
    return reported_usage(
        prompt, completion, prompt_details, completion_details, unknown_in(raw, _KNOWN_USAGE_FIELDS), tier
    )


def _is_search(item: JsonObject) -> bool:
    action = item.get("action")
    if item.get("type") == RESULT_TYPES[0]:
        return True
    return item.get("type") == SEARCH_CALL and isinstance(action, dict) and action.get("type") == "search"


def _counts(details: JsonValue) -> dict[str, int]:
    fields = details.items() if isinstance(details, dict) else ()
    return {_COUNT_NAMES.get(name, name): count for name, value in fields if (count := count_of(value)) is not None}


_COUNT_NAMES: Mapping[str, str] = {"cache_read_input_tokens": "cached_tokens"}
"""OpenAI's names of counts by Perplexity's names."""
