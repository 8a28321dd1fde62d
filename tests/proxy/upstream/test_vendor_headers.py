"""The vendor's request id and its limits, in response heads as vendors send them."""

from proxy.upstream.vendor_headers import MOST_PASSED, passed_headers, request_id_in, request_id_in_body
from tests.support.looped import looped


def head(*lines: str) -> bytes:
    return "\r\n".join(["HTTP/1.1 200 OK", "date: x", *lines, "", ""]).encode()


@looped(
    ("lines", "expected"),
    [
        (["x-request-id: req_1"], "req_1"),
        (["request-id:req_011CV", "via: 1.1"], "req_011CV"),
        (["x-amzn-RequestId: 6c2e-9b", "x: y"], "6c2e-9b"),
        (["X-Request-Id: ours", "apim-request-id: 7d-11"], "7d-11"),
        (["x-generation-id: gen-1 "], "gen-1"),
        (["x-request-id: ours"], ""),
        (["x-request-id: a b"], ""),
        (["x-request-id: " + "a" * 129], ""),
        (["my-x-request-id: a"], ""),
        (["x: request-id: a"], ""),
        ([], ""),
    ],
)
def test_the_first_id_that_is_not_ours_is_the_vendors(lines: list[str], expected: str) -> None:
    assert request_id_in(head(*lines), "ours") == expected


@looped(
    ("body", "expected"),
    [
        (b'{"type":"error","request_id":"req_1"}', "req_1"),
        (b'{"requestId" : "6c-2e"}', "6c-2e"),
        (b'{"request_id":"a b"}', ""),
        (b"", ""),
    ],
)
def test_an_error_may_name_the_id(body: bytes, expected: str) -> None:
    assert request_id_in_body(body) == expected


LIMITS = head(
    "Anthropic-RateLimit-Requests-Reset: 2026-11-28T22:00:00Z",
    "x-ratelimit-reset-tokens: 6m0s",
    "x-ratelimit-bad: a b",
    "x-should-retry: false",
)


@looped(
    ("surface", "profile", "passed"),
    [
        ("anthropic", "anthropic", {"anthropic-ratelimit-requests-reset": "2026-11-28T22:00:00Z"}),
        ("openai", "openai", {"x-ratelimit-reset-tokens": "6m0s"}),
        ("responses", "azure_v1", {"x-ratelimit-reset-tokens": "6m0s"}),
        ("openai", "groq", None),
        ("openai", "anthropic", None),
        ("anthropic", "openai", None),
    ],
)
def test_limits_pass_to_clients_of_the_vendors_own_api(
    surface: str, profile: str, passed: dict[str, str] | None
) -> None:
    expected = {} if passed is None else {**passed, "x-should-retry": "false"}
    assert passed_headers(LIMITS, surface, profile) == expected


def test_so_many_of_them_pass() -> None:
    many = head(*[f"x-ratelimit-{number}: 1" for number in range(99)])
    assert len(passed_headers(many, "openai", "openai")) == MOST_PASSED
