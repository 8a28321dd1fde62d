"""Reads the requests of tasks that are passed on: the gateway's own fields out of a JSON body, or the fields of a form.

A request is refused if a vendor might read it differently.
"""

from collections.abc import Callable
from typing import Final, TypeVar

from aiohttp import hdrs, web

from providers.json_types import JsonObject, JsonValue
from providers.tasks.pass_on import PassedRequest
from providers.unified_request import Task
from proxy.errors import FieldProblem, GatewayError, bad_http, invalid_request
from proxy.forms.part_heads import BadHead, boundary_of
from proxy.forms.spooled_form import SpooledForm
from proxy.surfaces.request import pass_through_fields
from proxy.surfaces.request.field_rules import model
from proxy.surfaces.request.parse_json import load
from proxy.surfaces.request.rule_kinds import Invalid

T = TypeVar("T")

MOST_INPUTS: Final = 2048
"""The most texts of one request. OpenAI accepts this many for embeddings, and states no limit for moderations."""

MOST_FIELDS: Final = 1024
"""The most fields of one request. OpenAI's API has at most 14 fields for a task; engines have some dozens."""

_GATEWAY: Final = ("inference_timeout", "inference_extra_params", "inference_extra_headers")
_OWN: Final = frozenset({"model", *_GATEWAY})
_ONE_TEXT: Final = ("model", "prompt", "language", "response_format", "temperature", "stream", "chunking_strategy")
"""Fields that a form may have only once, and only as a text: if a field occurs twice, some vendors use the first and
some the last."""


def form_boundary(http: web.BaseRequest) -> str:
    """Return the boundary of a request's form. Raises GatewayError."""
    kinds = http.headers.getall(hdrs.CONTENT_TYPE, [])
    try:
        boundary = boundary_of(kinds[0]) if len(kinds) == 1 else None
    except BadHead as bad:
        raise bad_http(f"The request {bad}.") from None
    if boundary is None:
        raise invalid_request((FieldProblem((), "The request body must be multipart/form-data with a boundary."),))
    return boundary


def refuse_fields(form: SpooledForm) -> None:
    """Raise GatewayError for the gateway's own fields, which no form may have, and for fields that the vendor might
    read differently than the gateway."""
    for name in _GATEWAY:
        if name in form.fields:
            raise _refused(name, "cannot stand in a form; the header x-request-timeout limits its time")
    for name in _ONE_TEXT:
        if isinstance(form.fields.get(name), list):
            raise _refused(name, "stands more than once in the form")
        if name in form.files:
            raise _refused(name, "must be a field, and not a file")


def _refused(name: str, why: str) -> GatewayError:
    return invalid_request((FieldProblem((name,), f"'{name}' {why}.", "unsupported_parameter"),))


def read_passed(task: Task, body: bytes, default_model: str | None) -> PassedRequest:
    """Return the request that a JSON body holds; a missing model is `default_model`. Raises GatewayError."""
    content = load(body, _OWN)
    refuse_many(content)
    timeout = _own(content, "inference_timeout", pass_through_fields.timeout)
    params = _own(content, "inference_extra_params", pass_through_fields.params)
    headers = _own(content, "inference_extra_headers", pass_through_fields.headers)
    stream = content.get("stream") is True or content.get("stream_format") == "sse"
    return PassedRequest(task, model_of(content, default_model), content, stream, timeout, params, headers)


def refuse_many(content: JsonObject) -> None:
    """Raise GatewayError if there are more fields or inputs than any vendor accepts."""
    if len(content) > MOST_FIELDS:
        message = f"The request body may have at most {MOST_FIELDS} fields, and has {len(content)}."
        raise invalid_request((FieldProblem((), message),))
    for name in ("input", "prompt"):
        if isinstance(value := content.get(name), list) and len(value) > MOST_INPUTS:
            message = f"'{name}' may hold at most {MOST_INPUTS} inputs, and holds {len(value)}."
            raise invalid_request((FieldProblem((name,), message),))


def _own(content: JsonObject, name: str, check: Callable[[JsonValue], T]) -> T | None:
    """Take a field of the gateway's own out of a body, and return its checked value; `None` if it is absent. Raises
    GatewayError."""
    value = content.pop(name, None)
    return None if value is None else _checked(name, value, check)


def _checked(name: str, value: JsonValue, check: Callable[[JsonValue], T]) -> T:
    try:
        return check(value)
    except Invalid as bad:
        path = ".".join(map(str, (name, *bad.loc)))
        raise invalid_request((FieldProblem((name, *bad.loc), f"'{path}' {bad.message}.", bad.code),)) from None


def model_of(fields: JsonObject, default: str | None) -> str:
    """Return the model that a request names, or the default. Raises GatewayError if there is neither."""
    named = fields.get("model")
    if named is None and default is None:
        raise invalid_request((FieldProblem(("model",), "'model' is required."),))
    return _checked("model", default if named is None else named, model)
