"""The precedence of the headers of an upstream call."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.surfaces.request.pass_through_fields import headers as extra_headers
from proxy.surfaces.request.rule_kinds import Invalid
from proxy.upstream.request_headers import TRACE_HEADERS, call_headers
from tests.proxy.kit.transport_calls import TARGET, call
from tests.support.examples import examples
from tests.support.looped import looped


@pytest.mark.smoke
def test_the_operator_s_headers_replace_the_request_s_whatever_their_case() -> None:
    sent = call("http://vendor/", headers={"AUTHORIZATION": "client", "X-Own": "1"})
    headers = call_headers(sent, {"Authorization": "operator"}, "req-1")
    assert headers.getall("authorization") == ["operator"]
    assert headers["x-own"] == "1"


@pytest.mark.smoke
def test_nobody_replaces_the_content_type_or_the_request_s_id() -> None:
    given = {"content-type": "other", "x-request-id": "other"}
    headers = call_headers(call("http://vendor/", headers=given), given, "req-1")
    assert headers.getall("content-type") == ["application/json"]
    assert headers.getall("x-request-id") == ["req-1"]


def test_a_call_that_is_no_json_says_what_it_is() -> None:
    sent = replace(call("http://vendor/", headers={"content-type": "other"}), content_type="text/plain")
    assert call_headers(sent, {}, "req-1").getall("content-type") == ["text/plain"]


def test_a_trace_s_lines_replace_those_of_the_client_and_no_other_header() -> None:
    given = {"TraceParent": "client", "tracestate": "client", "X-Own": "1"}
    sent = call("http://vendor/", headers=given)
    sent.carry_trace("traceparent: fixed\r\n", TRACE_HEADERS)
    assert (sent.headers, sent.trace) == ({"X-Own": "1"}, "traceparent: fixed\r\n")
    assert given.keys() == {"TraceParent", "tracestate", "X-Own"}


def test_the_request_s_own_headers_stay_as_they_were() -> None:
    sent = call("http://vendor/", headers={"X-Own": "1"})
    call_headers(sent, {"X-Own": "2"}, "req-1")
    assert sent == replace(sent, headers={"X-Own": "1"})


def test_a_client_s_header_never_replaces_the_operator_s_whatever_the_case() -> None:
    passed = extra_headers({"x-TEAM": "client", "User-Agent": "client/1"})
    headers = call_headers(call("http://vendor/", headers=passed), {"X-Team": "operator"}, "req-1")
    assert headers.getall("x-team") == ["operator"]
    assert headers.getall("user-agent") == ["client/1"]


@looped(
    ("needed", "operators", "expected"),
    [
        ({"anthropic-beta": "a,b"}, {"Anthropic-Beta": "c"}, "c,a,b"),
        ({"anthropic-beta": "a, b"}, {"anthropic-beta": "b , c,"}, "b,c,a"),
        ({"Anthropic-Beta": "a,a", "anthropic-beta": "b"}, {}, "a,b"),
        ({}, {"anthropic-beta": "c"}, "c"),
    ],
)
def test_switches_of_a_vendor_that_several_turn_on_are_all_on(
    needed: dict[str, str], operators: dict[str, str], expected: str
) -> None:
    headers = call_headers(call("http://vendor/", headers=needed), operators, "req-1")
    assert headers.getall("anthropic-beta") == [expected]


OPERATOR = {**TARGET.credential.headers(), "X-Team": "search", "anthropic-beta": "operator"}
OWN = {*(name.lower() for name in OPERATOR), "content-type", "x-request-id", "x-dragoman-hops"}
HOSTILE = ("host", "authorization", "x-api-key", "content-length", "transfer-encoding", "cookie", "x-forwarded-host")
MARKS_OF_THE_HOSTILE = ("host", "auth", "key", "content", "encoding", "cookie", "forwarded")
HARMLESS = ("x-trace", "x-team", "anthropic-beta", "user-agent", "traceparent")


def variants(names: tuple[str, ...]) -> st.SearchStrategy[str]:
    marks = st.sampled_from(["", "", "", " ", "\t", "\r\n", "\0", ":", "_", "-"])
    cases = st.sampled_from([str.lower, str.upper, str.title])
    return st.builds(
        lambda name, case, before, after: before + case(name) + after, st.sampled_from(names), cases, marks, marks
    )


NEARLY_PRINTABLE = st.text(st.characters(min_codepoint=31, max_codepoint=127), max_size=4)


@examples(300)
@given(
    st.dictionaries(variants(HOSTILE) | variants(HARMLESS), NEARLY_PRINTABLE | st.text(max_size=4), max_size=3)
    | st.dictionaries(st.sampled_from(HARMLESS) | NEARLY_PRINTABLE, NEARLY_PRINTABLE, max_size=3)
)
def test_nothing_that_a_client_may_hand_on_changes_host_credentials_or_framing(value: dict[str, str]) -> None:
    try:
        passed = extra_headers(dict(value))
    except Invalid:
        return
    headers = call_headers(call("http://vendor/", headers=passed), OPERATOR, "req-1")
    (betas,) = headers.popall("anthropic-beta")
    assert betas.split(",")[0] == OPERATOR["anthropic-beta"]
    operators = {name: item for name, item in OPERATOR.items() if name != "anthropic-beta"}
    assert {name: headers.getall(name) for name in operators} == {name: [item] for name, item in operators.items()}
    added = {name.lower(): item for name, item in headers.items() if name.lower() not in OWN}
    assert added.keys() <= {name.lower() for name in value}
    assert not [name for name in added if any(mark in name for mark in MARKS_OF_THE_HOSTILE)]
    assert all(text.isascii() and text.isprintable() for pair in headers.items() for text in pair)
