"""The known keys and words of the APIs."""

from proxy.plugins.request_strings.known_words import KNOWN_KEYS, WORD_KEYS, WORDS, words
from tests.support.looped import looped


def test_words_stand_between_blanks() -> None:
    assert words(" a b\n c ") == {"a", "b", "c"}


@looped("word", ["user", "assistant", "input_text", "object", "date-time", "auto", "high"])
def test_what_every_client_sends_is_a_word(word: str) -> None:
    assert word in WORDS


def test_keys_of_words_are_known_keys() -> None:
    assert WORD_KEYS < KNOWN_KEYS
    assert {"messages", "content", "properties", "$ref"} < KNOWN_KEYS
