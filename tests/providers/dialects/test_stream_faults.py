"""Streams that end well although a vendor lost or mixed up a part of them, as raw bytes; and similar but harmless forms
that real vendors send."""

from typing import Final

import pytest

from tests.providers.dialects.kit import sent_for, target_of, text_of, text_request
from tests.providers.dialects.raw_streams import (
    DONE,
    ENDED,
    OVER,
    STOP,
    candidate,
    chat,
    completed,
    ends,
    gemini,
    good,
    legacy,
    said,
    told,
)
from tests.support.looped import looped

# Choices that were not requested ----- --------------------------------------------------------------------------------

FOREIGN: Final = [b"1", b"7", b"-1", b"1.0", b'"1"', b"true", b"0.5", b"[]", b'"x"', b"18446744073709551616"]


@looped("index", FOREIGN)
def test_content_for_a_choice_that_nobody_asked_for_breaks_the_stream(index: bytes) -> None:
    events = told(chat(), said(b"a"), said(b"b"), said(b"z", index), said(b"c"), STOP, DONE)
    assert text_of(events) == "ab"
    assert ends(events) == []
    events = told(legacy(), completed(b"a"), completed(b"b"), completed(b"z", index), ENDED, DONE)
    assert text_of(events) == "ab"


def test_a_vendor_that_counts_tokens_instead_of_choices_breaks_the_stream() -> None:
    """TGI before 2.0 did so, and Foundry Local 0.7.117."""
    events = told(chat(), said(b"a", b"0"), said(b"b", b"1"), said(b"c", b"2"), STOP, DONE)
    assert text_of(events) == "a"


@looped("index", [b"null", b"0.0", b'"0"'])
def test_the_only_choice_may_be_numbered_in_another_spelling_or_not_at_all(index: bytes) -> None:
    events = good(chat(), said(b"a", index), said(b"b", index), STOP, DONE)
    assert (text_of(events), ends(events)) == ("ab", [(0, "stop")])


def test_as_many_choices_as_were_asked_for_are_read_and_no_more() -> None:
    stop = STOP.replace(b'"index":0', b'"index":1')
    both = [said(b"a"), said(b"b", b"1"), said(b"c"), STOP, stop]
    assert ends(good(chat(n=2), *both, DONE)) == [(0, "stop"), (1, "stop")]
    told(chat(n=2), *both[:3], said(b"d", b"2"), *both[3:], DONE)


@pytest.mark.parametrize(
    "choice", [b'{"index":1,"delta":{}}', b'{"index":1,"delta":{"role":"assistant","content":""},"finish_reason":null}']
)
def test_a_choice_that_nobody_asked_for_and_that_says_nothing_is_passed_over(choice: bytes) -> None:
    events = good(chat(), said(b"a"), b'data: {"choices":[%b]}\n\n' % choice, said(b"b"), STOP, DONE)
    assert (text_of(events), ends(events)) == ("ab", [(0, "stop")])


# After the end of a choice -------------------------------------------------------------------------------------------

AFTER: Final = {
    "text": b'{"index":0,"delta":{"content":"b"},"finish_reason":null}',
    "text with an end of its own": b'{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}',
    "text of a completion": b'{"index":0,"text":"b","finish_reason":null}',
    "thinking": b'{"index":0,"delta":{"reasoning_content":"b"},"finish_reason":null}',
    "a refusal": b'{"index":0,"delta":{"refusal":"b"},"finish_reason":null}',
    "a call": b'{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":""}}]}}',
    "a piece of a call": b'{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}}',
}


@looped("name", AFTER)
def test_what_a_choice_says_after_its_end_breaks_the_stream(name: str) -> None:
    late = b'data: {"id":"c","choices":[%b]}\n\n' % AFTER[name]
    events = told(chat(), said(b"a"), said(b"a"), STOP, late, DONE)
    assert text_of(events) == "aa"


USAGE: Final = b'"usage":{"prompt_tokens":2,"completion_tokens":1,"total_tokens":3}'
FILTERED: Final = b'"content_filter_results":{"hate":{"filtered":false}},"content_filter_offsets":{"check_offset":4}'
HARMLESS: Final = {
    "usage alone": b'{"id":"c","choices":[],%b}' % USAGE,
    "usage beside the end again": b'{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],%b}' % USAGE,
    "usage beside an empty text": b'{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}],%b}' % USAGE,
    "the end with null for text": b'{"choices":[{"index":0,"delta":{"content":null},"finish_reason":"stop"}]}',
    "an empty text of a completion": b'{"choices":[{"index":0,"text":"","finish_reason":"stop"}],%b}' % USAGE,
    "filters without a delta": b'{"id":"","choices":[{"index":0,"finish_reason":null,%b}],"usage":null}' % FILTERED,
    "filters with an empty delta": b'{"choices":[{"index":0,"delta":{},"finish_reason":null,%b}]}' % FILTERED,
    "empty lists": b'{"choices":[{"index":0,"delta":{"tool_calls":[],"content":""},"finish_reason":"stop"}]}',
    "no pieces": b'{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":""}}]}}]}',
    "the whole message": b'{"choices":[{"index":0,"message":{"role":"assistant","content":"ab"}}]}',
    "all of it": b'{"choices":[{"index":0,"delta":{"content":""},"message":{"role":"assistant","content":"ab"}}]}',
}


@looped("name", HARMLESS)
def test_what_vendors_send_after_the_end_of_a_healthy_choice_is_no_fault(name: str) -> None:
    late = b"data: %b\n\n" % HARMLESS[name]
    events = good(chat(), said(b"a"), said(b"b"), STOP, late, DONE)
    assert (text_of(events), ends(events)) == ("ab", [(0, "stop")])


def test_the_whole_message_at_the_end_of_a_stream_is_not_said_again() -> None:
    whole = b'data: {"choices":[{"index":0,"message":{"content":"ab"},"finish_reason":"stop"}]}\n\n'
    events = good(chat(), said(b"a"), said(b"b"), whole, DONE)
    assert (text_of(events), ends(events)) == ("ab", [(0, "stop")])
    events = good(chat(), whole, DONE)
    assert (text_of(events), ends(events)) == ("ab", [(0, "stop")])


# The same in Gemini's and llama.cpp's own APIs -----------------------------------------------------------------------


@looped("index", [b"1", b"-1", b"1.0", b'"1"', b"[]", b"true"])
def test_a_candidate_that_nobody_asked_for_breaks_the_stream(index: bytes) -> None:
    events = told(gemini(), candidate(b"a"), candidate(b"z", b',"index":%b' % index), OVER)
    assert (text_of(events), ends(events)) == ("a", [])


def test_two_candidates_with_one_number_break_the_stream() -> None:
    twice = b'data: {"candidates":[{"content":{"parts":[{"text":"a"}]}},{"content":{"parts":[{"text":"b"}]}}]}\r\n\r\n'
    assert told(gemini(), twice, OVER) == []


def test_a_candidate_that_says_nothing_is_passed_over() -> None:
    silent = b'data: {"candidates":[{"content":{"role":"model"},"index":1,"finishReason":"STOP"}]}\r\n\r\n'
    assert ends(good(gemini(), candidate(b"a"), silent, OVER)) == [(0, "stop")]


def test_a_candidate_may_go_on_after_a_reason_since_its_end_is_that_of_the_stream() -> None:
    """Gemini 1.0 sent a reason with every object."""
    each = b',"finishReason":"STOP"'
    assert text_of(good(gemini(), candidate(b"a", each), candidate(b"b", each))) == "ab"


def test_a_prompt_of_llama_cpp_that_goes_on_after_its_end_breaks_the_stream() -> None:
    def result(text: bytes, rest: bytes = b'"stop":false', index: int = 0) -> bytes:
        return b'data: {"index":%d,"content":"%b",%b}\n\n' % (index, text, rest)

    sent = sent_for(text_request(), target_of("llamacpp_native"))
    object.__setattr__(sent, "body", b'{"prompt":["a","b"]}')
    last = b'"stop":true,"stop_type":"eos"'
    told(sent, result(b"a"), result(b"", last), result(b"z"), result(b"b", last, 1))
    assert text_of(good(sent, result(b"a"), result(b"", last), result(b""), result(b"b", last, 1))) == "ab"
