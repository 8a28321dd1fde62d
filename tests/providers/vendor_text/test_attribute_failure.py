"""The cause of a refusal: a model that the vendor lacks, a front end of the vendor, or neither."""

from dataclasses import replace
from typing import Final

import orjson

from providers.dialect import UpstreamRequest
from providers.failure import GATEWAY_MESSAGES, UNKNOWN_ITEM, UNKNOWN_MODEL, Failure, FailureKind
from providers.unified_request import Operation
from providers.vendor_text.attribute_failure import FRONT_END, attribute
from tests.providers.dialects.kit import target_of
from tests.support.looped import looped

K = FailureKind
NOT_FOUND: Final = Failure(K.NOT_FOUND, GATEWAY_MESSAGES[K.NOT_FOUND], 404)
DENIED: Final = Failure(K.AUTH, GATEWAY_MESSAGES[K.AUTH], 403, said="")


def sent(body: bytes = b"{}", **members: object) -> UpstreamRequest:
    target = target_of("openai", "claude-3-opus", **members)
    return UpstreamRequest(target, Operation.CHAT, "https://v.example/v1/chat/completions", body, stream=False)


IDS: Final = (
    b'{"file_id": "file-1", "input": ["rs_abc", "resp_1", "vs_1", "cntr_1", "file-abc", "file_011", "files/abc"],'
    b' "cachedContent": "cachedContents/x"}'
)
NAMED: Final = sent(model_key="v/claude-3-opus")
ANY: Final = sent(model_key="v/*")

ABSENT = (
    b'{"error":{"message":"The model `x` does not exist or you do not have access to it.","code":"model_not_found"}}',
    b' {"type":"error","error":{"type":"not_found_error","message":"model: claude-3-opus"}}',
    b'[{"error":{"code":404,"message":"models/x is not found for API version v1beta, or is not supported"}}]',
    b'{"message":"This model version has reached the end of its life."}',
    b'{"message":"Could not resolve the foundation model from the provided model identifier."}',
    b'{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}',
    b'{"error":{"message":"Model not found, inaccessible, and/or not deployed"}}',
    b'{"error":{"code":"model_decommissioned","message":"gone"}}',
    b'{"error":"model \'tiny\' not found"}',
    b'{"message":"Not found the model x or Permission denied"}',
)
OTHER = (
    b"",
    b"<html>no model here</html>",
    b'{"detail":"Not Found"}',
    b'{"error":{"message":"File file-abc not found"}}',
    b'{"error":{"message":"Previous response with id resp_1 not found."}}',
    b'{"error":{"message":"No endpoints found for claude-3-opus.","code":404}}',
    b'{"error":{"message":"No endpoints found matching your data policy (Free model publication)."}}',
    b'{"error":{"message":"No allowed providers are available for the selected model."}}',
    b'{"error":{"message":"Container claude-3-opus-20240229-x not found"}}',
)


@looped("body", ABSENT)
def test_a_model_that_the_vendor_lacks_is_the_deployments_failure_unless_the_client_named_it(body: bytes) -> None:
    failure = attribute(NOT_FOUND, NAMED, 404, body)
    assert (failure.kind, failure.message, failure.status) == (K.NO_MODEL, GATEWAY_MESSAGES[K.NO_MODEL], 404)
    if b"odel" in body:
        failure = attribute(NOT_FOUND, ANY, 404, body)
        assert (failure.kind, failure.code, failure.param) == (K.NOT_FOUND, UNKNOWN_MODEL, "model")
        assert "'claude-3-opus'" in failure.message


@looped("body", OTHER)
def test_what_else_is_not_found_is_nobodys_health(body: bytes) -> None:
    assert attribute(NOT_FOUND, NAMED, 404, body) is NOT_FOUND


@looped(
    ("said", "item"),
    [
        ("No such File object: file-1", True),
        ("Item with id 'rs_abc' not found. Items are not persisted when `store` is set to false.", True),
        ("Previous response with id 'resp_1' not found.", True),
        ("The vector store with id ['vs_1'] does not exist.", True),
        ("Container with id 'cntr_1' not found.", True),
        ("Could not find file file-abc", True),
        ("File not found: file_011", True),
        ("CachedContent not found (or permission denied)", True),
        ("File not found", False),
        ("The model `x-1` does not exist or you do not have access to it.", False),
        ("Invalid URL (POST /v1/chat/completion)", False),
        ("Requested entity was not found.", False),
        ("Not Found", False),
        ("", False),
    ],
)
def test_a_missing_item_is_reported_to_the_client_if_the_request_names_it(said: str, item: bool) -> None:
    body = orjson.dumps({"error": {"message": said}})
    for call, named in ((NAMED, False), (ANY, False), (replace(NAMED, body=IDS), item), (replace(ANY, body=IDS), item)):
        failure = attribute(replace(NOT_FOUND, said=said), call, 404, body)
        assert (failure.code == UNKNOWN_ITEM, failure.kind is K.UNSUPPORTED) == (named, named)
        assert (failure.message == said) == named


def test_a_file_of_another_account_is_reported_to_the_client_if_the_request_names_it() -> None:
    said = "You do not have permission to access the File abc or it may not exist."
    body = orjson.dumps({"error": {"message": said}})
    failure = attribute(replace(DENIED, said=said), replace(NAMED, body=IDS), 403, body)
    assert (failure.kind, failure.code, failure.message) == (K.UNSUPPORTED, UNKNOWN_ITEM, said)
    assert attribute(replace(DENIED, said=said), NAMED, 403, body).kind is K.AUTH
    said = "You do not have permission to access the model x or it may not exist."
    assert attribute(replace(DENIED, said=said), NAMED, 403, body).kind is K.AUTH


@looped(
    ("status", "body", "kind"),
    [
        (403, b"<html><h1>Sorry, you have been blocked</h1>", K.FORBIDDEN),
        (403, b"Forbidden", K.FORBIDDEN),
        (403, b"", K.FORBIDDEN),
        (403, b'{"title":"Error 1020: Access denied","cloudflare_error":true}', K.FORBIDDEN),
        (403, b' {"error":{"code":"denied"}}', K.AUTH),
        (401, b"<html>Unauthorized</html>", K.AUTH),
    ],
)
def test_a_403_that_is_no_error_of_the_vendors_says_nothing_of_the_credential(
    status: int, body: bytes, kind: FailureKind
) -> None:
    failure = attribute(DENIED, NAMED, status, body)
    assert failure.kind is kind
    if kind is K.FORBIDDEN:
        assert (failure.message, failure.evidence, failure.said) == (FRONT_END, body.decode(), "")


def test_a_403_with_the_vendors_own_words_is_about_the_credential() -> None:
    failure = Failure(K.AUTH, GATEWAY_MESSAGES[K.AUTH], 403, said="no access")
    assert attribute(failure, NAMED, 403, b'{"detail":"no access"}') is failure


def test_no_other_failure_is_blamed_on_the_model() -> None:
    failure = Failure(K.AUTH, "why", 401)
    assert attribute(failure, ANY, 401, b'{"error":"no access to the model"}') is failure
