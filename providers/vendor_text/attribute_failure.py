"""Finds the cause of a vendor's refusal if the status and the failure kind do not show it.

Sources: the vendors' error pages and messages in public issue threads, November 2026.
"""

import re
from dataclasses import replace
from typing import Final

from providers.context_overflow import MAX_TEXT
from providers.dialect import UpstreamRequest
from providers.failure import GATEWAY_MESSAGES, UNKNOWN_ITEM, UNKNOWN_MODEL, Failure, FailureKind
from providers.target import Target
from providers.vendor_text.vet_message import vet

_ABSENT_MODEL = re.compile(
    rb"model_not_found|modelnotfound|model_decommissioned|model_not_supported|model_not_available|unknown_model"
    rb"|invalid_model|unavailable_model|deploymentnotfound"
    rb"|\b(?:model|deployment)s?\b[^.]{0,200}?\b(?:not found|(?:does )?not exist|no longer|not supported|not available"
    rb"|decommission|deprecated|retired|end of (?:its )?life|removed|invalid|unknown|unavailable|inaccessible|legacy"
    rb"|not have access|no access)"
    rb"|\b(?:unknown|invalid|no such|unable to access|resolve|not found) (?:the )?(?:foundation )?"
    rb"(?:model|deployment)\b"
)
"""Wordings, in lower case, by which vendors report that they do not have a model."""

_NO_ROUTE = re.compile(rb"no endpoints found|no allowed providers|providers? (?:are|is) available")
"""Wordings by which OpenRouter and similar vendors report that the settings of the account or the request exclude every
provider of a model. Other requests may have a provider."""

_ITEM: Final = (
    r"(?:file|item|response|conversation|container|vector[ _]?store|upload|skill|cached ?content|image|document|batch"
    r"|prompt|thread)s?\b"
)
_ABSENT_ITEM: Final = re.compile(
    rf"^\W*(?:the |your |(?:one or more|requested|previous|referenced) )*{_ITEM}.{{0,160}}?"
    r"\b(?:not found|(?:does|do|did) not exist|not exist|no longer exists?|has expired|is expired)\b"
    r"|^\W*(?:no such|no|unknown|(?:could not|couldn't|cannot|can't|unable to|failed to) find) "
    rf"(?:(?:the|a|an|any) )?{_ITEM}",
    re.IGNORECASE,
)
"""Beginnings of messages by which vendors report that they do not have an item that the client names by an id: OpenAI
("No such File object: file-1", "Item with id 'rs_1' not found. …"), Anthropic ("File not found: file_1"), Google
("CachedContent not found (or permission denied)")."""

_CLOSED_ITEM: Final = re.compile(
    rf"^\W*you do(?: not|n't) have permission to access the {_ITEM}\W*(\S+).{{0,160}} or it may not exist\b",
    re.IGNORECASE,
)
"""Google's message, with status 403, for a file that the account does not have."""

_ID: Final = re.compile(r"\b(?=[a-z.]*[-_\d])[\w.-]*\w", re.IGNORECASE)
"""A word of a message that may be an id."""

_CACHED_CONTENT: Final = re.compile(r"cached ?content", re.IGNORECASE)
"""Google's name of an item whose id the message leaves out. The request has the id in `cachedContent`."""

MAX_LOGGED_BYTES: Final = 200
"""The most bytes of an error page that the log shows."""

FRONT_END: Final = "A front end of the upstream refused this request with status 403 and no error of the vendor's own."


def attribute(failure: Failure, sent: UpstreamRequest, status: int, body: bytes) -> Failure:
    """Return the failure of the call `sent`, whose response has `status` and `body`, attributed to its cause.

    A model that the vendor does not have is the client's mistake if the client chose the name, otherwise the
    deployment's failure. A file or another item that the vendor does not have is the client's mistake only if the
    request names the item; another vendor may have it. A 403 without an error in the vendor's form concerns only this
    request: web application firewalls respond with a page.
    """
    target = sent.target
    if _is_about_missing_item(failure, sent, status):
        return replace(failure, kind=FailureKind.UNSUPPORTED, message=failure.said, code=UNKNOWN_ITEM, said="")
    if failure.kind is FailureKind.NOT_FOUND and _is_json(body):
        return _attributed_to_model(failure, target, body[:MAX_TEXT].lower())
    if failure.kind is FailureKind.AUTH and status == 403 and not _is_own_error(failure, body):
        page_start = vet(body[:MAX_LOGGED_BYTES].decode("utf-8", "replace"))
        return replace(failure, kind=FailureKind.FORBIDDEN, message=FRONT_END, evidence=page_start, said="")
    return failure


def _is_about_missing_item(failure: Failure, sent: UpstreamRequest, status: int) -> bool:
    said = failure.said
    if failure.kind is FailureKind.NOT_FOUND and _ABSENT_ITEM.search(said) is not None:
        if _CACHED_CONTENT.search(said) and b"cachedContent" in sent.body:
            return True
        return any(_is_named(found, sent) for found in _ID.findall(said))
    if failure.kind is FailureKind.AUTH and status == 403 and (closed := _CLOSED_ITEM.search(said)) is not None:
        return _is_named(closed[1], sent)
    return False


def _is_named(item: str, sent: UpstreamRequest) -> bool:
    """Return whether the request names an item. A text of up to two characters is too short to be a name."""
    return len(item) > 2 and (item in sent.url or item.encode() in sent.body)


def _is_json(body: bytes) -> bool:
    return body.lstrip()[:1] in (b"{", b"[")


def _is_own_error(failure: Failure, body: bytes) -> bool:
    """Return whether a body is an error in a vendor's form: JSON with a message that was read, or with `error`."""
    return _is_json(body) and (bool(failure.said) or b'"error"' in body)


def _attributed_to_model(failure: Failure, target: Target, said: bytes) -> Failure:
    if target.model_key.endswith("/*"):
        if b"model" not in said:
            return failure
        message = (
            f"The vendor does not know the model {vet(target.model)!r}, or it is not open to the gateway's account."
        )
        return replace(failure, message=message, code=UNKNOWN_MODEL, param="model")
    named = re.search(rb"(?<![\w.-])" + re.escape(target.upstream_model.lower().encode()) + rb"(?![\w-])", said)
    if (named or _ABSENT_MODEL.search(said)) and not _NO_ROUTE.search(said):
        return replace(failure, kind=FailureKind.NO_MODEL, message=GATEWAY_MESSAGES[FailureKind.NO_MODEL])
    return failure
