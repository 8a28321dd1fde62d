"""An entry is the same after its frames, and its line has what it holds."""

import json
import re

from proxy.payload_log.payload_entry import (
    HEAD,
    SLACK,
    PayloadEntry,
    entry_line,
    read_head,
    read_response,
    response,
)
from tests.support.looped import looped

FACTS = b'{"request_id":"r"}'


@looped("request_body", [None, b"", b"{}"])
@looped("streamed", [True, False])
def test_the_head_says_what_follows(request_body: bytes | None, streamed: bool) -> None:
    entry = PayloadEntry(FACTS, request_body, b"[]", streamed)
    data = b"".join(entry.frames())
    head = read_head(data[:HEAD])
    assert (head.facts, head.request, head.answer, head.streamed) == (
        *(len(FACTS), None if request_body is None else len(request_body), 2),
        streamed,
    )
    assert len(data) == HEAD + len(FACTS) + entry.size


@looped("error", [0, 28, -1])
def test_a_response_is_a_number(error: int) -> None:
    assert read_response(response(error)) == error


def test_a_line_has_the_facts_the_request_and_the_answer_redacted() -> None:
    entry = PayloadEntry(FACTS, b'{"a":"canary"}', b'{"b":"canary"}')
    line = entry_line(entry, [re.compile("can.*")], 1024)
    assert line.endswith(b"}\n")
    assert json.loads(line) == {"request_id": "r", "request": {"a": "[redacted]"}, "answer": {"b": "[redacted]"}}
    assert json.loads(entry_line(PayloadEntry(FACTS, None, None), [], 1024)) == {"request_id": "r"}


def test_a_client_s_credentials_are_never_in_a_line() -> None:
    entry = {"litellm_params": {"api_key": "canary", "model": "m"}}
    body = {
        **{"api_key": "canary", "AWS_Secret_Access_Key": "canary", "langfuse_secret_key": "canary", "model": "m"},
        **{"user_config": {"model_list": [entry]}, "messages": [{"role": "user", "content": "api_key"}]},
    }
    line = entry_line(PayloadEntry(FACTS, json.dumps(body).encode(), None), [], 4096)
    assert b"canary" not in line
    assert json.loads(line)["request"]["messages"] == body["messages"]
    assert json.loads(line)["request"]["user_config"]["model_list"][0]["litellm_params"]["model"] == "m"


def test_a_client_s_names_among_the_facts_are_redacted() -> None:
    facts = b'{"request_id":"canary","model":"v/say:canary","deployment":"v/say:canary","status":200}'
    line = json.loads(entry_line(PayloadEntry(facts, None, None), [re.compile("canary")], 1024))
    said = "v/say:[redacted]"
    assert line == {"request_id": "canary", "model": said, "deployment": said, "status": 200}


def test_what_is_not_whole_is_named() -> None:
    entry = PayloadEntry(FACTS, json.dumps("a" * 9000).encode(), b'["b"]')
    assert json.loads(entry_line(entry, [], 1024))["cut"] == ["request"]


def test_a_part_of_a_secret_at_the_end_of_a_stream_that_goes_on_is_not_shown() -> None:
    said = "a" * 5000 + "x" * (SLACK - 6) + "4111 1"
    calls = [{"name": "f", "arguments": said}, {"name": "g", "arguments": "{}"}]
    choice = {"index": 0, "text": said, "reasoning": "r", "tool_calls": calls, "clipped": ["text", 0]}
    entry = PayloadEntry(FACTS, None, json.dumps([choice]).encode(), streamed=True)
    line = json.loads(entry_line(entry, [re.compile(r"4111 1111")], 100_000))
    assert line["streamed"] == [
        {
            "index": 0,
            "text": "a" * 5000,
            "reasoning": "r",
            "tool_calls": [{"name": "f", "arguments": "a" * 5000}, {"name": "g", "arguments": "{}"}],
        }
    ]
    assert line["cut"] == ["streamed"]


def test_a_withheld_entry_has_its_facts_and_the_reason() -> None:
    entry = PayloadEntry(FACTS, b"canary", b"canary").withheld("too long")
    assert json.loads(entry_line(entry, [], 1024)) == {"request_id": "r", "withheld": "too long"}
