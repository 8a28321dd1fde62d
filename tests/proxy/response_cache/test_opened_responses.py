"""Responses that were unpacked once: found by the entry they came from, within their byte limit."""

from proxy.response_cache.packed_response import CachedResponse
from proxy.response_cache.store import LARGEST, MOST_BYTES, OpenedResponse, OpenedResponses

ANSWER = CachedResponse("v/m/d")


def opened(entry: bytes) -> OpenedResponse:
    return OpenedResponse(entry, 1.0, ANSWER)


def test_an_answer_is_found_by_the_very_object_that_was_opened() -> None:
    entry, equal = bytes(bytearray(b"entry")), bytes(bytearray(b"entry"))
    answers = OpenedResponses()
    answers.put("k", opened(entry))
    found = answers.find("k", entry)
    assert found is not None
    assert found.answer is ANSWER
    assert answers.find("other", entry) is None
    assert answers.find("k", equal) is None
    assert answers.find("k", entry) is None
    assert answers.size == 0


def test_what_takes_too_much_goes_the_one_not_asked_for_longest_first() -> None:
    answers = OpenedResponses()
    entries = [bytes(LARGEST) for _ in range(MOST_BYTES // LARGEST)]
    for place, entry in enumerate(entries):
        answers.put(str(place), opened(entry))
    assert answers.find("0", entries[0]) is not None
    answers.put("one more", opened(b"x"))
    assert answers.find("0", entries[0]) is not None
    assert answers.find("1", entries[1]) is None
    assert answers.size <= MOST_BYTES


def test_a_large_one_is_not_remembered_and_a_key_counts_once() -> None:
    answers = OpenedResponses()
    answers.put("k", opened(bytes(LARGEST + 1)))
    assert answers.size == 0
    for size in (10, 20, 30):
        answers.put("k", opened(bytes(size)))
    assert answers.size == 30
