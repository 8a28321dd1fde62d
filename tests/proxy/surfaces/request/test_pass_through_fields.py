"""The fields that a client may pass through to the upstream."""

from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.client_extras.hosts_paths_and_code import is_reserved
from providers.json_types import JsonObject, JsonValue
from providers.request_fields import PROTECTED_PARAMS
from proxy.surfaces.request.pass_through_fields import MAX_HEADER_BYTES, MAX_HEADERS, headers, params, timeout
from proxy.surfaces.request.rule_kinds import Invalid
from tests.support.looped import looped


@looped(("value", "seconds"), [(30, 30.0), (0.5, 0.5), ("30", 30.0), ("2.5", 2.5), ("007", 7.0), (10**9, 1e9)])
def test_a_timeout_is_seconds_as_number_or_digits(value: JsonValue, seconds: float) -> None:
    result = timeout(value)
    assert result == seconds
    assert isinstance(result, float)


@looped(
    "value",
    [0, -1, -0.0, float("nan"), float("inf"), float("-inf"), True, False, [], {}, "0", "-1", "2m", "abc", "", " 3",
     "1\n", "1e3", "+1", "1.", ".5", "1_0", "0x10", "inf", "nan", "٣", "9" * 5000],
)  # fmt: skip
def test_other_timeouts_are_refused(value: JsonValue) -> None:
    with pytest.raises(Invalid, match="seconds above 0"):
        timeout(value)


def test_extra_params_pass_as_they_are() -> None:
    extra: dict[str, JsonValue] = {"top_a": 0.1, "nested": {"model": "fine here"}}
    assert params(extra) == extra


@looped("name", sorted(PROTECTED_PARAMS))
def test_extra_params_cannot_touch_what_the_gateway_decides(name: str) -> None:
    with pytest.raises(Invalid) as caught:
        params({"top_a": 1, name: 1})
    assert caught.value.loc == (name,)


@looped("name", ["Model", "MODEL", "Stream", "\u017ftream", "Stream_Options", "Me\u017f\u017fages", "PROMPT", "N"])
def test_another_case_is_no_way_to_a_protected_field(name: str) -> None:
    with pytest.raises(Invalid) as caught:
        params({name: 1})
    assert caught.value.loc == (name,)


@looped(
    "name",
    ["models", "fallbacks", "api_base", "base_url", "url", "api_key", "API_Key", "organization", "project", "headers",
     "extra_headers", "extra_body", "extra_query", "azure_endpoint", "vertex_endpoint"],
)  # fmt: skip
def test_extra_params_choose_no_other_model_address_or_account(name: str) -> None:
    with pytest.raises(Invalid, match="cannot be set here"):
        params({name: "x"})


WITHIN = ["api_base", "base_url", "API_KEY", "extra_headers", "extra_body", "extra_query", "azure_endpoint"]


@looped("name", WITHIN)
def test_no_depth_hides_another_address_or_credential(name: str) -> None:
    hidden: list[tuple[JsonObject, tuple[str | int, ...]]] = [
        ({"a": {name: 1}}, ("a", name)),
        ({"a": [1, {"b": [[{name: 1}]]}]}, ("a", 1, "b", 0, 0, name)),
        ({"properties": {"x": {name: 1}}}, ("properties", "x", name)),
        ({"a": {"properties": {"properties": {name: 1}}}}, ("a", "properties", "properties", name)),
    ]
    for extra, loc in hidden:
        with pytest.raises(Invalid, match="cannot be set here") as caught:
            params(extra)
        assert caught.value.loc == loc


@looped("name", WITHIN)
def test_a_schema_may_describe_members_of_any_name(name: str) -> None:
    schema: JsonObject = {"properties": {name: {"type": "string", "default": {name: "x"}}}, "required": [name]}
    extra: JsonObject = {"structured_outputs": {"json": schema}, "tool": {"parameters": {"$defs": {name: schema}}}}
    assert params(extra) == extra


@looped("name", ["url", "headers", "project", "organization", "model", "messages"])
def test_plain_words_within_are_the_vendor_s_to_read(name: str) -> None:
    assert params({"a": {name: "x"}}) == {"a": {name: "x"}}


@looped("name", ["a.model", "body.messages", "extra.n", "$.model", "/model", "model.name", "/prompt/0"])
def test_a_path_is_a_name_like_any_other(name: str) -> None:
    assert params({name: 1}) == {name: 1}


@given(st.dictionaries(st.sampled_from([*PROTECTED_PARAMS, "top_a"]) | st.text(max_size=6), st.integers()))
def test_extra_params_that_pass_hold_no_protected_field(value: dict[str, int]) -> None:
    harmless = not any(name.casefold() in PROTECTED_PARAMS for name in value)
    with nullcontext() if harmless else pytest.raises(Invalid, match="cannot be set here"):
        assert params(dict(value)) == value
    assert harmless == (not any(is_reserved(name) for name in value))


@looped("value", [[], "a", 1, True])
def test_extra_params_are_an_object(value: JsonValue) -> None:
    with pytest.raises(Invalid, match="must be an object"):
        params(value)


@looped(
    "name",
    ["X-My-Header", "anthropic-beta", "OpenAI-Beta", "traceparent", "HTTP-Referer", "X-SMG-Routing-Key"],
)  # fmt: skip
def test_extra_headers_of_a_good_shape_are_kept_as_they_are_for_the_deployment_to_judge(name: str) -> None:
    assert headers({name: "a b"}) == {name: "a b"}
    assert headers({name: ""}) == {name: ""}


CREDENTIALS = [
    "Authorization", "api-key", "X-API-Key", "apikey", "x-goog-api-key", "Ocp-Apim-Subscription-Key", "X-Auth-Token",
    "x-functions-key", "Modal-Key", "Modal-Secret", "Private-Token", "Helicone-Auth", "cf-aig-authorization",
    "x-portkey-virtual-key", "X-Amz-Security-Token", "X-Amz-Date", "Cookie", "Cookie2", "Set-Cookie",
    "Proxy-Authorization", "x-ms-authorization-auxiliary", "WWW-Authenticate", "Idempotency-Key",
]  # fmt: skip
ROUTES = [
    "Host", "X-Host", "X-Forwarded-For", "x-forwarded-host", "Forwarded", "Via", "x-original-url", "X-Rewrite-URL",
    "X-HTTP-Method-Override", "x-portkey-custom-host", "Max-Forwards",
]  # fmt: skip
FRAMING = [
    "Content-Length", "content-type", "Content-Encoding", "Transfer-Encoding", "Connection", "Keep-Alive", "TE",
    "Trailer", "Upgrade", "HTTP2-Settings", "Expect", "Proxy-Connection", "Accept", "Accept-Encoding", "Range",
    "If-None-Match", "Prefer", "Sec-WebSocket-Key", "Date", "X-Request-ID", "x-dragoman-deployment",
]  # fmt: skip


@looped("name", [*CREDENTIALS, *ROUTES, *FRAMING])
def test_headers_of_host_route_framing_and_credentials_are_refused_by_name(name: str) -> None:
    for spelling in (name, name.lower(), name.upper()):
        with pytest.raises(Invalid, match="cannot be set here") as caught:
            headers({"x-fine": "1", spelling: "v"})
        assert caught.value.loc == (spelling,)


@looped("name", ["", "a b", "a:b", "a\r\nb", "ä", "a\x00", "(x)", " host", "host\t", "x_host", "a.b"])
def test_a_name_that_is_no_token_is_refused_without_repeating_it(name: str) -> None:
    with pytest.raises(Invalid) as caught:
        headers({name: "v"})
    assert caught.value.loc == ()
    assert name == "" or name not in caught.value.message


@looped("value", ["a\rb", "a\nb", "a\x00b", "a\x01b", "a\x1fb", "a\x7fb", "ä", "\u2028", "a\tb", 1, None, [], True])
def test_a_value_that_is_not_printable_ascii_is_refused_by_its_name(value: JsonValue) -> None:
    with pytest.raises(Invalid) as caught:
        headers({"x-a": value})
    assert caught.value.loc == ("x-a",)


def test_a_header_in_two_spellings_is_refused() -> None:
    with pytest.raises(Invalid, match="more than once"):
        headers({"X-A": "1", "x-a": "2"})


def test_extra_headers_are_bounded_in_number_and_size() -> None:
    assert len(headers({f"x-{number}": "" for number in range(MAX_HEADERS)})) == MAX_HEADERS
    assert headers({"x": "v" * (MAX_HEADER_BYTES - 1)})
    for value in ({f"x-{number}": "" for number in range(MAX_HEADERS + 1)}, {"x": "v" * MAX_HEADER_BYTES}):
        with pytest.raises(Invalid, match="at most"):
            headers(dict(value))


@given(st.dictionaries(st.text(max_size=12), st.text(max_size=12), max_size=4))
def test_whatever_passes_fits_on_the_wire(value: dict[str, str]) -> None:
    try:
        passed = headers(dict(value))
    except Invalid:
        return
    for name, item in passed.items():
        assert name.isascii()
        assert not set(name) & set(" :\r\n\0_")
        assert item.isascii()
        assert item.isprintable()
