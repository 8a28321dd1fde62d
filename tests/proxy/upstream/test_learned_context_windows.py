"""Windows are learned per engine, compared with the configured ones, and forgotten in order."""

from dataclasses import replace

import orjson

from providers.context_overflow import Overflow
from providers.dialect import UpstreamRequest
from providers.unified_request import Operation
from proxy.upstream.fit_context_window import Windows, named_by_vendor
from tests.providers.dialects.openai.kit import target
from tests.support.looped import looped

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


@looped(
    ("prompt", "overflow", "window"),
    [
        ("hello", Overflow(8192, 9000), 8192),
        ("hello", Overflow(prompt_alone=True), None),
        ("hello", Overflow(0), None),
        ("maximum context length is 1024 tokens", Overflow(1024, 9000), None),
        ("maximum context size is 1,024 tokens", Overflow(1024, 9000), None),
    ],
)
def test_a_window_is_learned_from_an_error_unless_the_vendor_repeats_a_client_s_words(
    prompt: str, overflow: Overflow, window: int | None
) -> None:
    assert named_by_vendor(sent(prompt), overflow) == window
