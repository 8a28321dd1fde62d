"""What a client may hand through to the upstream."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.unified import PROTECTED_PARAMS, JsonValue
from proxy.surfaces.checks import Invalid
from proxy.surfaces.extras import MAX_HEADER_BYTES, MAX_HEADERS, headers, params, timeout


@pytest.mark.parametrize(
    ("value", "seconds"), [(30, 30.0), (0.5, 0.5), ("30", 30.0), ("2.5", 2.5), ("007", 7.0), (10**9, 1e9)]
)
def test_a_timeout_is_seconds_as_number_or_digits(value: JsonValue, seconds: float) -> None:
    result = timeout(value)
    assert result == seconds
    assert isinstance(result, float)


@pytest.mark.parametrize(
    "value", [0, -1, "0", "-1", "2m", "abc", "", " 3", "1e3", "inf", "nan", "٣", True, [], {}, "9" * 5000]
)
def test_other_timeouts_are_refused(value: JsonValue) -> None:
    with pytest.raises(Invalid, match="seconds above 0"):
        timeout(value)


def test_extra_params_pass_as_they_are() -> None:
    extra: dict[str, JsonValue] = {"top_a": 0.1, "nested": {"model": "fine here"}}
    assert params(extra) == extra


@pytest.mark.parametrize("name", sorted(PROTECTED_PARAMS))
def test_extra_params_cannot_touch_what_the_gateway_decides(name: str) -> None:
    with pytest.raises(Invalid) as caught:
        params({"top_a": 1, name: 1})
    assert caught.value.loc == (name,)


@pytest.mark.parametrize("value", [[], "a", 1, True])
def test_extra_params_are_an_object(value: JsonValue) -> None:
    with pytest.raises(Invalid, match="must be an object"):
        params(value)


def test_extra_headers_pass_as_they_are() -> None:
    assert headers({"X-Trace": "a b", "anthropic-beta": ""}) == {"X-Trace": "a b", "anthropic-beta": ""}


@pytest.mark.parametrize(
    "name",
    [
        "Authorization", "api-key", "X-API-Key", "x-goog-api-key", "Cookie", "Host", "Content-Length", "content-type",
        "Transfer-Encoding", "Connection", "TE", "Upgrade", "Trailer", "Keep-Alive", "Expect", "Proxy-Authorization",
        "Forwarded", "X-Forwarded-For", "x-forwarded-host", "X-Amz-Security-Token", "Accept-Encoding", "x-original-url",
    ],
)  # fmt: skip
def test_headers_of_host_route_framing_and_credentials_are_refused_by_name(name: str) -> None:
    with pytest.raises(Invalid) as caught:
        headers({"x-fine": "1", name: "v"})
    assert caught.value.loc == (name,)


@pytest.mark.parametrize("name", ["", "a b", "a:b", "a\r\nb", "ä", "a\x00", "(x)"])
def test_a_name_that_is_no_token_is_refused_without_repeating_it(name: str) -> None:
    with pytest.raises(Invalid) as caught:
        headers({name: "v"})
    assert caught.value.loc == ()
    assert name == "" or name not in caught.value.message


@pytest.mark.parametrize(
    "value", ["a\rb", "a\nb", "a\x00b", "a\x01b", "a\x1fb", "a\x7fb", "ä", "\u2028", "a\tb", 1, None, [], True]
)
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
        assert not set(name) & set(" :\r\n\0")
        assert item.isascii()
        assert item.isprintable()
