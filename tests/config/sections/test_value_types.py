"""The types of values: the values that each accepts, and that no refusal repeats a value."""

from collections.abc import Mapping
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr, TypeAdapter, ValidationError

from config.reading.yaml_scalars import Unquoted
from config.sections import value_types as types
from tests.support.looped import looped


def accepted(kind: object, value: object) -> object:
    adapter: TypeAdapter[object] = TypeAdapter(kind)  # type: ignore[arg-type] # to a checker an annotation is an object
    return adapter.validate_python(value, strict=True)


def refusal(kind: object, value: object) -> str:
    with pytest.raises(ValidationError) as caught:
        accepted(kind, value)
    return caught.value.errors(include_input=False)[0]["msg"]


@looped(
    ("text", "seconds"),
    [
        (5, 5.0),
        (0.5, 0.5),
        ("500ms", 0.5),
        ("30s", 30.0),
        ("1.5s", 1.5),
        ("2m", 120.0),
        ("1h30m", 5400.0),
        ("1d", 86400.0),
        (Unquoted("10"), 10.0),
        (Unquoted("10s"), 10.0),
    ],
)
def test_a_duration_is_seconds_or_text_with_units(text: object, seconds: float) -> None:
    assert accepted(types.Duration, text) == seconds


@looped("value", ["30", "s", "1w", "-1s", "1 s", "1s ", "5s\n", "1.s", "", True, None, "9" * 5000 + "s", 1e6])
def test_anything_else_is_no_duration(value: object) -> None:
    assert refusal(types.Duration, value)


def test_a_timeout_is_more_than_nothing_and_may_be_left_out() -> None:
    assert accepted(types.Timeout, None) is None
    assert accepted(types.Timeout, Unquoted("")) is None
    assert refusal(types.Timeout, 0)
    assert refusal(types.Timeout, "0s")
    assert accepted(types.Duration, 0) == 0.0


@given(st.integers(0, 86400))
def test_seconds_written_out_are_the_same_seconds(seconds: int) -> None:
    assert accepted(types.Duration, f"{seconds}s") == seconds


@looped(
    ("text", "moment"),
    [
        ("2026-12-31T18:00:00Z", "2026-12-31T18:00:00+00:00"),
        ("2026-12-31t18:00:00.25z", "2026-12-31T18:00:00.250000+00:00"),
        ("2026-12-31 18:00:00+02:00", "2026-12-31T16:00:00+00:00"),
        ("2026-12-31", "2027-01-01T00:00:00+00:00"),
        (Unquoted("2028-02-28"), "2028-02-29T00:00:00+00:00"),
    ],
)
def test_a_moment_has_its_zone_and_a_date_lasts_to_its_end_in_utc(text: str, moment: str) -> None:
    assert accepted(types.Moment, text) == datetime.fromisoformat(moment)


@looped(
    "text",
    [
        *("2026-12-31T18:00:00", "2026-12-31T18:00Z", "2026-12-31T24:00:01Z", "2026-12-31T18:00:60Z", "2026-12-31\n"),
        *("2026-13-01", "2026-02-29", "9999-12-31", "0001-01-01T00:00:00+01:00", "20261231", "31.12.2026", "soon", ""),
    ],
)
def test_anything_else_is_no_moment(text: str) -> None:
    assert refusal(types.Moment, text).startswith("must be a date such as 2026-12-31, or a time with its zone")


@looped(
    ("text", "size"),
    [
        (4096, 4096),
        ("4096", 4096),
        ("4096B", 4096),
        ("500kB", 500_000),
        ("32MiB", 2**25),
        ("1 GiB", 2**30),
        ("2MB", 2_000_000),
    ],
)
def test_a_size_is_bytes_or_text_with_units(text: object, size: int) -> None:
    assert accepted(types.Size, text) == size


@looped("value", ["32mib", "1.5MiB", "MiB", "1TiB", "2GiB", 1, "-1kB", 4096.5, True, "4096\n"])
def test_anything_else_is_no_size(value: object) -> None:
    assert refusal(types.Size, value)


@looped(
    ("text", "count"),
    [
        (128_000, 128_000),
        ("128k", 128_000),
        ("200K", 200_000),
        ("1m", 1_000_000),
        ("1.048M", 1_048_000),
        ("0.001k", 1),
        (None, None),
    ],
)
def test_a_token_count_is_a_number_or_text_in_thousands_or_millions(text: object, count: int | None) -> None:
    assert accepted(types.Tokens, text) == count


@looped("value", ["128", "128 k", "128kB", "k", "1.2345k", "0k", "-1k", "1e3", "1001m", "1b", 1.5, "1k\n"])
def test_anything_else_is_no_token_count(value: object) -> None:
    assert refusal(types.Tokens, value)


@looped(
    ("kind", "text", "value"),
    [
        (types.Port, "8080", 8080),
        (types.Switch, "no", False),
        (types.Switch, "true", True),
        (types.Tokens, "", None),
        (types.Tokens, "128000", 128_000),
        (types.Tokens, "128k", 128_000),
        (types.Weight, " 3 ", 3),
        (types.Policy, "weighted", "weighted"),
        (types.Text, "no", "no"),
        (types.Text, "017", "017"),
        (types.UrlParam, "12345", "12345"),
        (types.UrlParam, "no", "no"),
    ],
)
def test_an_expanded_unquoted_word_is_what_its_field_wants(kind: object, text: str, value: object) -> None:
    read = accepted(kind, Unquoted(text))
    assert (read, type(read)) == (value, type(value))


@looped(("kind", "text"), [(types.Port, "017"), (types.Port, "x"), (types.Switch, "1"), (types.Weight, "")])
def test_an_expanded_word_that_does_not_fit_is_refused(kind: object, text: str) -> None:
    assert refusal(kind, Unquoted(text))


def test_a_quoted_number_is_no_number() -> None:
    assert refusal(types.Port, "8080")
    assert refusal(types.Switch, "true")
    assert refusal(types.Port, 80.0)
    assert refusal(types.Port, True)


NAMES: Mapping[str, tuple[object, list[str], list[str]]] = {
    "vendor": (
        types.VendorName,
        ["openai", "azure-eu", "a.b_c", "4x"],
        ["", "-a", "a/b", "a b", "a\n", "x" * 65, "${V}", "*"],
    ),
    "model": (
        types.ModelKey,
        ["a/b", "a/*", "fireworks/accounts/fireworks/models/x", "cf/@cf/meta/llama", "a/b:free", "v/" + "x" * 254],
        [
            "a",
            "a/",
            "/b",
            "a//b",
            "a/b/",
            "a/..",
            "a/./b",
            "a/b*",
            "*",
            "*/b",
            "a/b c",
            "v/" + "x" * 255,
            "a/${B}",
            "a/b\n",
        ],
    ),
    "route": (types.RouteName, ["fast", "gpt-4o", "openai/gpt-4o"], ["", "a*", "a//b", "*", "..", "a b"]),
    "target": (types.TargetName, ["fast", "a/b", "a/b/c"], ["a/*", "*", "", "a b"]),
    "allowed": (
        types.AllowedName,
        ["*", "a/*", "a/b", "a/b/c", "fast"],
        ["a*", "a/b*", "a/b/*", "**", "*/b", "", "a b"],
    ),
    "parameter": (
        types.UrlParam,
        ["my-resource", "adb-1.azure.example:8443", "a_b~c"],
        ["a/b", "a?b", "a@b", "a b", "", "{x}"],
    ),
}


@looped("name", NAMES)
def test_a_name_holds_what_a_url_segment_and_a_label_can(name: str) -> None:
    kind, good, bad = NAMES[name]
    assert [accepted(kind, each) for each in good] == good
    assert all(refusal(kind, each) for each in bad)


def test_a_digest_is_kept_in_lower_case() -> None:
    assert accepted(types.KeyDigest, "sha256:" + "AB" * 32) == "sha256:" + "ab" * 32


@looped("value", ["sk-canary", "sha256:canary", "sha256:" + "a" * 63, "md5:" + "a" * 64, "", "a" * 64])
def test_a_plain_key_is_refused_with_the_way_to_make_one(value: str) -> None:
    told = refusal(types.KeyDigest, value)
    assert "dragoman key new" in told
    assert "canary" not in told


@looped("value", ["canary canary", "canary\n", " canary", "canary\x00", "canäry", "canary\u2028"])
def test_a_credential_that_no_header_can_carry_is_refused_without_repeating_it(value: str) -> None:
    told = refusal(types.Credential, value)
    assert "at position" in told
    assert "can" not in told


def test_a_credential_may_be_empty_and_shows_nothing() -> None:
    assert accepted(types.Credential, "") == SecretStr("")
    assert "canary" not in repr(accepted(types.Credential, "canary"))


@looped("name", ["X-Team", "openai-organization", "anthropic-beta", "user-agent"])
def test_a_header_may_have_any_name_that_is_free(name: str) -> None:
    assert accepted(types.HeaderName, name) == name


OURS = ["Host", "content-length", "Transfer-Encoding", "connection", "TE", "Proxy-Authorization", "X-Forwarded-For"]
OURS += [
    "Authorization",
    "x-api-key",
    "API-KEY",
    "cookie",
    "Upgrade",
    "keep-alive",
    "trailer",
    "content-type",
    "expect",
]


@looped("name", [*OURS, "", "a b", "a:b", "a\r\nb", "ä", "x" * 129])
def test_a_header_of_ours_or_no_header_is_refused(name: str) -> None:
    assert refusal(types.HeaderName, name)


@looped("value", ["a\r\nb: c", "\x00", "日", " a", "a ", "a\tb", "\x7f", "x" * 4097])
def test_a_header_value_that_could_end_the_header_is_refused(value: str) -> None:
    assert refusal(types.HeaderValue, value)


def test_a_header_value_may_be_latin_1_and_shows_nothing() -> None:
    assert repr(accepted(types.HeaderValue, "café; q=1")) == "SecretStr('**********')"


@looped(("host", "kept"), [("0.0.0.0", "0.0.0.0"), ("::", "::"), ("[::1]", "::1"), ("gw.example", "gw.example")])
def test_a_host_to_listen_on_is_a_name_or_an_address(host: str, kept: str) -> None:
    assert accepted(types.Host, host) == kept


@looped("host", ["", "a b", "127.1", "http://a", "a:80", "169.254.1.1"])
def test_anything_else_is_no_host(host: str) -> None:
    assert refusal(types.Host, host)


def test_a_base_url_is_an_address_to_send_to() -> None:
    assert accepted(types.BaseUrl, "https://a.example/v1") == "https://a.example/v1"
    assert refusal(types.BaseUrl, "https://a.example?x=1") == "may not hold a query or a fragment"


@looped(
    ("kind", "good", "bad"),
    [
        (
            types.AllowedHeader,
            ["x-a", "X-My-Header", "x-team-*", "b3"],
            ["*", "x*", "x-*-a", "x_a", "x-", "-x", "a b", ""],
        ),
        (types.AllowedField, ["chat_template", "loraPath", "speculative.n_max"], ["", "a b", "a[0]", "-a", "*"]),
        (types.Scheme, ["https", "data", "gs", "s3", "nixl+tcp"], ["", "HTTPS", "https:", "https://", "s", "*"]),
    ],
)
def test_names_of_what_clients_may_send_are_names(kind: type[str], good: list[str], bad: list[str]) -> None:
    adapter = TypeAdapter(kind)
    for text in good:
        assert adapter.validate_python(text) == text
    for text in bad:
        with pytest.raises(ValidationError):
            adapter.validate_python(text)
