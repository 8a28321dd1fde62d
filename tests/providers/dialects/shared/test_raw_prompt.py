"""What endpoints of one raw prompt share: its text, and the limit that must be told."""

from dataclasses import replace

import pytest

from providers.capabilities import Capabilities, compiled
from providers.dialects.shared.raw_prompt import ONE_RAW_PROMPT, needed_limit, prompt_text
from providers.dialects.shared.request_body import RequestBody
from providers.failure import Refusal
from providers.unified_request import TextPrompt, TokenPrompt, UnifiedRequest
from tests.providers.dialects.kit import target_of, text_request

TABLE = Capabilities(compiled((), ONE_RAW_PROMPT))


def draft(request: UnifiedRequest, limit: int | None = None) -> RequestBody:
    return RequestBody(request, target_of("triton", max_output_tokens=limit), TABLE, {})


def test_a_prompt_is_its_text() -> None:
    assert prompt_text(draft(text_request("The sky"))) == "The sky"
    assert prompt_text(draft(replace(text_request(), prompt=TextPrompt(("a",), listed=True)))) == "a"


@pytest.mark.parametrize("prompt", [TextPrompt(("",)), TextPrompt(("a", "b")), TokenPrompt(((1, 2),))])
def test_other_prompts_are_refused(prompt: TextPrompt | TokenPrompt) -> None:
    with pytest.raises(Refusal) as caught:
        prompt_text(draft(replace(text_request(), prompt=prompt)))
    assert caught.value.param == "prompt"


def test_the_limit_is_the_clients_else_the_tables() -> None:
    assert needed_limit(draft(text_request(max_tokens=5), 9)) == 5
    assert needed_limit(draft(text_request(), 9)) == 9


@pytest.mark.parametrize("params", [{}, {"max_tokens": 0}])
def test_a_limit_that_is_missing_or_none_is_refused(params: dict[str, object]) -> None:
    with pytest.raises(Refusal) as caught:
        needed_limit(draft(text_request(**params)))
    assert (caught.value.param, caught.value.code) == ("max_tokens", "invalid_value")
