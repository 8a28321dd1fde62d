"""The `server.tracing` section."""

import pytest

from config.load_config import load_text
from config.problem import ConfigError
from config.sections.tracing_section import TracingSection
from tests.support.looped import looped

HEAD = "version: 1\nvendors: {v: {}}\nmodels: {v/m: {}}\n"


def written(tracing: str) -> TracingSection | None:
    return load_text(f"{HEAD}server: {{tracing: {tracing}}}\n", "t.yaml", {"TOKEN": "canary"}).config.server.tracing


def test_none_written_traces_nothing() -> None:
    assert load_text(HEAD, "t.yaml", {}).config.server.tracing is None


def test_an_address_is_enough() -> None:
    section = written("{endpoint: 'http://127.0.0.1:4318'}")
    assert section is not None
    assert (section.sample, section.content, section.metrics, section.timeout) == (1.0, False, "off", 10.0)
    assert (section.service_name, section.headers, section.attributes) == ("dragoman", {}, {})


@looped(("word", "metrics"), [("on", "on"), ("off", "off"), ("'on'", "on"), ("false", "off")])
def test_metrics_are_switched_by_yamls_words(word: str, metrics: str) -> None:
    section = written(f"{{endpoint: 'https://otlp.example.com', metrics: {word}, sample: 0.1, timeout: 500ms}}")
    assert section is not None
    assert (section.metrics, section.sample, section.timeout) == (metrics, 0.1, 0.5)


@looped(("share", "sample"), [("10%", 0.1), ("2.5 %", 0.025), ("0", 0.0), ("0%", 0.0), ("1", 1.0)])
def test_a_share_is_a_percentage_or_a_number(share: str, sample: float) -> None:
    section = written(f"{{endpoint: 'http://127.0.0.1:4318', sample: {share}}}")
    assert section is not None
    assert section.sample == sample


def test_headers_are_secrets() -> None:
    section = written("{endpoint: 'http://c:4318', headers: {authorization: 'Bearer ${TOKEN}'}}")
    assert section is not None
    assert "canary" not in repr(section)
    assert section.headers["authorization"].get_secret_value() == "Bearer canary"


@looped(
    ("tracing", "message"),
    [
        ("{}", "endpoint"),
        ("{endpoint: 'grpc://c:4317'}", "http or https"),
        ("{endpoint: 'http://user:canary@c:4318'}", "user name or password"),
        ("{endpoint: 'http://c', sample: 1.5}", "must be a share such as 80% or 0.8, at most 100%"),
        ("{endpoint: 'http://c', sample: canary}", "must be a share such as 80% or 0.8"),
        ("{endpoint: 'http://c', timeout: 0s}", "timeout"),
        ("{endpoint: 'http://c', headers: {Content-Type: x}}", "set by the exporter"),
        ("{endpoint: 'http://c', headers: {'a b': x}}", "is not a header name"),
        ('{endpoint: "http://c", headers: {a: "x\\ncanary"}}', "line break"),
        ("{endpoint: 'http://c', attributes: {'a b': x}}", "name of an attribute"),
        ("{endpoint: 'http://c', metrics: sometimes}", "metrics"),
    ],
)
def test_what_cannot_work_is_refused_without_its_value(tracing: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        written(tracing)
    assert message in str(refused.value)
    assert "canary" not in str(refused.value)
