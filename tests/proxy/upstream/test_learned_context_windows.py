"""Windows are learned by engine, held against the table's, and forgotten in order."""

from dataclasses import replace

import orjson
import pytest

from providers.context_overflow import Overflow
from providers.dialect import UpstreamRequest
from providers.unified_request import Operation
from proxy.upstream.learned_context_windows import Windows
from tests.providers.dialects.openai.kit import target

TARGET = target("vllm")


def test_nothing_is_known_before_an_engine_says_it_and_its_last_word_counts() -> None:
    assert Windows().known(TARGET) is None
    assert Windows().known(replace(TARGET, context_window=100)) == 100
    windows = Windows()
    windows.learn(TARGET, 4096)
    windows.learn(TARGET, 8192)
    assert windows.known(TARGET) == 8192


def test_the_smaller_of_the_table_s_and_the_engine_s_holds() -> None:
    windows = Windows()
    windows.learn(TARGET, 4096)
    assert windows.known(replace(TARGET, context_window=100)) == 100
    assert windows.known(replace(TARGET, context_window=8192)) == 4096


def test_an_engine_is_its_address_and_its_model() -> None:
    windows = Windows()
    windows.learn(TARGET, 4096)
    assert windows.known(replace(TARGET, vendor="w", model="n", deployment="e", weight=9)) == 4096
    assert windows.known(replace(TARGET, base_url="http://other/v1")) is None
    assert windows.known(replace(TARGET, upstream_model="other")) is None


def test_the_oldest_is_forgotten_and_what_is_said_again_is_new() -> None:
    first, second, third = (replace(TARGET, upstream_model=name) for name in "abc")
    windows = Windows(most=2)
    windows.learn(first, 1)
    windows.learn(second, 2)
    windows.learn(first, 3)
    windows.learn(third, 4)
    assert [windows.known(engine) for engine in (first, second, third)] == [3, None, 4]


def sent(prompt: str) -> UpstreamRequest:
    return UpstreamRequest(TARGET, Operation.COMPLETIONS, "http://up", orjson.dumps({"prompt": prompt}), stream=False)


def test_a_window_is_learned_from_an_error_that_names_one() -> None:
    windows = Windows()
    windows.learn_from_error(sent("hello"), Overflow(8192, 9000))
    assert windows.known(TARGET) == 8192
    windows.learn_from_error(sent("hello"), Overflow(prompt_alone=True))
    assert windows.known(TARGET) == 8192


@pytest.mark.parametrize("echoed", ["context length is 1024 tokens", "context size is 1,024 tokens"])
def test_no_client_sets_the_window_by_words_that_the_vendor_repeats(echoed: str) -> None:
    windows = Windows()
    windows.learn_from_error(sent(f"maximum {echoed}"), Overflow(1024, 9000))
    assert windows.known(TARGET) is None


def test_a_window_of_nothing_is_not_believed() -> None:
    windows = Windows()
    windows.learn_from_error(sent("hello"), Overflow(0))
    assert windows.known(TARGET) is None
