"""The version and the betas that a client names, and the betas that a cloud has."""

from dataclasses import replace

import orjson
import pytest

from providers.dialects.anthropic.native_betas import (
    BEDROCK_BETAS,
    VERTEX_BETAS,
    Betas,
    betas_on,
    given_betas,
    given_version,
)
from providers.emulation.plan_calls import plan_calls
from tests.providers.dialects.anthropic.native_kit import own_request
from tests.providers.dialects.kit import chat_request, target_of
from tests.support.looped import looped

CLAUDE_CODE = (
    *("claude-code-20250219", "interleaved-thinking-2025-05-14", "thinking-token-count-2026-05-13"),
    *("context-management-2025-06-27", "prompt-caching-scope-2026-01-05", "mid-conversation-system-2026-04-07"),
    "effort-2025-11-24",
)
"""The betas that Claude Code 2.1.197 names with every request to its main model."""


def test_betas_are_read_each_once() -> None:
    assert given_betas({"anthropic-beta": " a-1 ,b-2,, a-1"}) == ("a-1", "b-2")
    assert given_betas({}) == ()


def test_what_is_no_name_is_not_read_and_names_are_bounded() -> None:
    assert given_betas({"anthropic-beta": "a\r\nx: y,b c,é," + "x" * 200}) == ()
    assert len(given_betas({"anthropic-beta": ",".join(f"b-{number}" for number in range(5000))})) == 128


@looped(("given", "read"), [("2026-10-21", "2026-10-21"), ("", None), ("a b", None), ("x" * 99, None)])
def test_a_version_is_a_word(given: str, read: str | None) -> None:
    assert given_version({"anthropic-version": given}) == read


@pytest.mark.parametrize(
    ("platform", "kept"),
    [
        (VERTEX_BETAS, ("interleaved-thinking-2025-05-14", "context-management-2025-06-27")),
        (BEDROCK_BETAS, ("interleaved-thinking-2025-05-14", "context-management-2025-06-27", "effort-2025-11-24")),
    ],
)
def test_a_cloud_is_named_only_the_betas_that_it_has(platform: Betas, kept: tuple[str, ...]) -> None:
    assert betas_on(platform, CLAUDE_CODE) == (kept, True)
    assert betas_on(platform, kept) == (kept, False)


@pytest.mark.parametrize("platform", [VERTEX_BETAS, BEDROCK_BETAS])
def test_a_beta_that_a_cloud_has_under_another_name_is_named_so(platform: Betas) -> None:
    assert betas_on(platform, ["advanced-tool-use-2025-11-20", "tool-search-tool-2025-10-19"]) == (
        ("tool-search-tool-2025-10-19",),
        False,
    )


@looped(
    ("given", "extra", "kept", "dropped"),
    [
        (None, "a-1,server-side-fallback-2026-07-01", "a-1", True),
        (None, "server-side-fallback-2026-06-01", None, True),
        (None, "a-1", "a-1", False),
        ("compact-2026-01-12,server-side-fallback-2026-07-01", None, "compact-2026-01-12", True),
        ("server-side-fallback-2026-07-01", None, None, True),
        ("compact-2026-01-12", " server-side-fallback-2026-07-01 ", "compact-2026-01-12", True),
        ("fallback-credit-2026-07-01", None, "fallback-credit-2026-07-01", False),
    ],
)
@looped("profile", ["anthropic", "vertex_anthropic", "bedrock_anthropic"])
def test_the_beta_of_other_models_is_left_out_and_named(
    profile: str, given: str | None, extra: str | None, kept: str | None, dropped: bool
) -> None:
    request = chat_request() if given is None else own_request(headers={"anthropic-beta": given})
    if extra:
        request = replace(request, extra_headers={"Anthropic-Beta": extra})
    plan = plan_calls(request, target_of(profile, "claude-opus-4-5", base_url="https://host"))
    sent = plan.calls[0].sent
    if given and given.startswith("fallback-credit") and profile != "anthropic":
        kept, dropped = None, True  # which the clouds do not have
    found = sent.headers.get("anthropic-beta") or ",".join(orjson.loads(sent.body).get("anthropic_beta", ())) or None
    assert (found, "anthropic-beta" in plan.dropped) == (kept, dropped)
