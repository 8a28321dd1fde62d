"""The values of `server.log` and `server.payload_log`, and their meaning."""

from pathlib import Path

import pytest

from config.load_config import load_file, load_text
from config.problem import ConfigError
from config.sections.log_section import LogSection
from tests.support.looped import looped

HEAD = "version: 1\nvendors: {v: {}}\nmodels: {v/m: {}}\n"


def log(written: str) -> LogSection:
    return load_text(f"{HEAD}server: {{log: {written}}}\n", "t.yaml", {"FORM": "text"}).config.server.log


def complaint(written: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load_text(f"{HEAD}server: {written}\n", "t.yaml", {})
    return str(caught.value)


@looped("written", ["json", "{form: json}", "{}", "{sample: 100%}"])
def test_every_request_has_a_line_unless_the_table_says_otherwise(written: str) -> None:
    assert (log(written).form, log(written).sample, log(written).slow) == ("json", 1.0, 5.0)


def test_a_share_and_what_is_slow_are_taken_and_a_reference_as_the_form() -> None:
    both = log('{form: "${FORM}", sample: 2.5%, slow: 500ms}')
    assert (both.form, both.sample, both.slow) == ("text", 0.025, 0.5)
    assert log('"${FORM}"').form == "text"


@looped(
    ("written", "told"),
    [
        ("{log: xml}", "must be json or text"),
        ("{log: {sample: 0}}", "must be more than 0"),
        ("{log: {sample: 10}}", "must be a share such as 80% or 0.8, at most 100%"),
        ("{log: {slwo: 1s}}", "did you mean slow?"),
        ("{payload_log: {path: p, teams: []}}", "must not be empty"),
        ("{payload_log: {path: p, teams: ['*'], redact: ['(']}}", "must be a regular expression of Python's module re"),
        (
            "{payload_log: {path: p, teams: ['*'], redact: ['a(b']}}",
            ": missing ), unterminated subpattern at position 2",
        ),
        ("{payload_log: {path: p, teams: ['*'], redact: ['*a']}}", "module re: nothing to repeat at position 1"),
        ("{payload_log: {path: p, teams: ['*'], redact: ['[z-a]']}}", "module re: bad character range at position 2"),
        ("{payload_log: {path: p, teams: ['*'], redact: ['(?P=can)']}}", "module re: unknown group name at position 5"),
        ("{payload_log: {path: p, teams: ['*'], redact: ['a*']}}", "must not match an empty text"),
        ("{payload_log: {path: p, teams: ['*'], redact: [" + "a" * 1025 + "]}}", "at most 1024 characters"),
        ("{payload_log: {teams: ['*']}}", "path"),
    ],
)
def test_what_is_written_wrongly_is_named(written: str, told: str) -> None:
    assert told in complaint(written)


def test_the_payload_log_is_off_unless_written_and_stands_beside_the_table(tmp_path: Path) -> None:
    file = tmp_path / "table.yaml"
    file.write_text(HEAD, encoding="utf-8")
    assert load_file(file, {}).payloads is None
    file.write_text(f"{HEAD}server: {{payload_log: {{path: p.jsonl, teams: ['*']}}}}\n", encoding="utf-8")
    place = load_file(file, {}).payloads
    assert place is not None
    assert place.file == tmp_path / "p.jsonl"
    assert (place.most, place.redact, place.rotate, place.keep) == (65_536, (), 104_857_600, 5)
    assert place.includes_team("anonymous")


@looped(
    ("written", "told"),
    [
        ("{teams: ['*']}", "needs path or otlp"),
        ("{teams: ['*'], path: p, otlp: {endpoint: 'http://127.0.0.1:4318'}}", "leave one of them out"),
        ("{teams: ['*'], otlp: {endpoint: 'http://127.0.0.1:4318', timeout: 11s}}", "10"),
        ("{teams: ['*'], path: p, models: [v/m, w/x]}", "w/x"),
        ("{teams: ['*'], path: p, models: ['w/*']}", "w/*"),
    ],
)
def test_a_payload_log_has_one_place_and_names_that_there_are(written: str, told: str) -> None:
    assert told in complaint(f"{{payload_log: {written}}}")


def test_the_names_of_a_payload_log_are_those_of_allow_lists() -> None:
    text = f"{HEAD}server: {{payload_log: {{teams: ['*'], path: p, models: ['v/*', v/m]}}}}\n"
    place = load_text(text, "t.yaml", {}).payloads
    assert place is not None
    assert place.includes_any("v/other")
    assert not place.includes_any("w/m", "other")
