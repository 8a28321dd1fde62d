"""Which header of an upstream call replaces which."""

from dataclasses import replace

from proxy.outbound import call_headers
from tests.proxy.door import call


def test_the_operator_s_headers_replace_the_request_s_whatever_their_case() -> None:
    sent = call("http://vendor/", headers={"AUTHORIZATION": "client", "X-Own": "1"})
    headers = call_headers(sent, {"Authorization": "operator"}, "req-1")
    assert headers.getall("authorization") == ["operator"]
    assert headers["x-own"] == "1"


def test_nobody_replaces_the_content_type_or_the_request_s_id() -> None:
    given = {"content-type": "other", "x-request-id": "other"}
    headers = call_headers(call("http://vendor/", headers=given), given, "req-1")
    assert headers.getall("content-type") == ["application/json"]
    assert headers.getall("x-request-id") == ["req-1"]


def test_the_request_s_own_headers_stay_as_they_were() -> None:
    sent = call("http://vendor/", headers={"X-Own": "1"})
    call_headers(sent, {"X-Own": "2"}, "req-1")
    assert sent == replace(sent, headers={"X-Own": "1"})
