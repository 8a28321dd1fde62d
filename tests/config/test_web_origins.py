"""Hosts and origins, as the config file lists them and as requests carry them."""

import pytest
from pydantic import TypeAdapter, ValidationError

from config.sections.server_section import AllowedOrigin, HostPattern
from config.web_origins import HostPatterns, OriginPatterns, host_of
from tests.support.looped import looped

HOST = TypeAdapter[str](HostPattern)
ORIGIN = TypeAdapter[str](AllowedOrigin)


@looped(
    ("authority", "host"),
    [
        ("localhost", "localhost"),
        ("LocalHost:8080", "localhost"),
        ("localhost.:8080", "localhost"),
        ("127.0.0.1:80", "127.0.0.1"),
        ("[::1]", "::1"),
        ("[::1]:8080", "::1"),
        ("[::FFFF:127.0.0.1]:1", "::ffff:127.0.0.1"),
        ("my_gateway:8080", "my_gateway"),
    ],
)
def test_a_host_is_read_without_port_brackets_case_and_trailing_dot(authority: str, host: str) -> None:
    assert host_of(authority) == host


@looped(
    "authority",
    ["", ":8080", "localhost:", "localhost:x", "::1", "[::1", "a@localhost", "a/b", "a b", "a,b", "localhost:123456"],
)
def test_what_is_no_authority_has_no_host(authority: str) -> None:
    assert host_of(authority) is None


@looped(
    ("written", "kept"),
    [
        ("llm.example.com", "llm.example.com"),
        ("LLM.Example.com.", "llm.example.com"),
        ("*.example.com", "*.example.com"),
        ("192.0.2.7", "192.0.2.7"),
        ("[2001:DB8::0:1]", "2001:db8::1"),
        ("gateway", "gateway"),
    ],
)
def test_a_host_may_be_listed_as_clients_write_it(written: str, kept: str) -> None:
    assert HOST.validate_python(written) == kept


@looped(
    "written", ["", "*", "*.", "a.*.b", "https://a.example", "a.example:8080", "a/b", "a b", "[a.example]", "0x7f.1"]
)
def test_what_is_no_host_cannot_be_listed(written: str) -> None:
    with pytest.raises(ValidationError, match="without scheme and port"):
        HOST.validate_python(written)


def test_a_star_stands_for_names_below_and_not_for_the_domain_or_its_neighbours() -> None:
    patterns = HostPatterns.of(["*.example.com", "gateway"])
    assert [each for each in ("a.example.com", "b.a.example.com", "gateway") if not patterns.match(each)] == []
    assert [
        each for each in ("example.com", "aexample.com", "a.example.com.evil", "x.gateway") if patterns.match(each)
    ] == []


@looped(
    ("written", "kept"),
    [
        ("https://app.example.com", "https://app.example.com"),
        ("HTTPS://App.Example.com", "https://app.example.com"),
        ("https://app.example.com:443", "https://app.example.com"),
        ("http://localhost:80", "http://localhost"),
        ("http://localhost:5173", "http://localhost:5173"),
        ("http://localhost:*", "http://localhost:*"),
        ("http://[::1]:3000", "http://[::1]:3000"),
        ("chrome-extension://abcdefgh", "chrome-extension://abcdefgh"),
        ("moz-extension://*", "moz-extension://*"),
        ("file://", "file://"),
        ("*", "*"),
    ],
)
def test_an_origin_may_be_listed_as_browsers_send_it(written: str, kept: str) -> None:
    assert ORIGIN.validate_python(written) == kept


@looped(
    "written",
    [
        *("", "null", "NULL", "app.example.com", "https://", "https://*", "http://*:80", "https://*.example.com"),
        *("https://app.example.com/", "https://app.example.com/x", "https://a@b", "https://a?b", "https://a:x"),
        *("chrome-extension://a/b", "https://a, https://b", "http://2130706433"),
    ],
)
def test_what_is_no_origin_cannot_be_listed(written: str) -> None:
    with pytest.raises(ValidationError):
        ORIGIN.validate_python(written)


LISTED = OriginPatterns.of(["https://app.example.com", "http://localhost:*", "moz-extension://*", "file://"])


@looped(
    "origin",
    [
        "https://app.example.com",
        "http://localhost",
        "http://localhost:5173",
        "moz-extension://6f0b6c1e-0000-4000-8000-000000000000",
        "file://",
    ],
)
def test_a_listed_origin_is_known(origin: str) -> None:
    assert LISTED.match(origin)


@looped(
    "origin",
    [
        *("", "*", "null", "https://evil.example", "http://app.example.com", "https://app.example.com:8443"),
        *("https://app.example.com.evil.example", "https://app.example.com/", "https://app.example.com@evil.example"),
        *("http://localhost:", "http://localhost:x", "http://localhost:80.evil.example", "http://localhost.evil:80"),
        *("https://localhost:5173", "moz-extension://a b", "moz-extension://a\r\nx: y", "chrome-extension://a"),
        *("file://evil", "https://app.example.com\n", "http://localhost:5173\n"),
    ],
)
def test_another_origin_is_not(origin: str) -> None:
    assert not LISTED.match(origin)


def test_any_origin_lists_none_by_name() -> None:
    patterns = OriginPatterns.of(["*"])
    assert patterns.any
    assert not patterns.match("https://evil.example")
    assert not patterns.match("*")
