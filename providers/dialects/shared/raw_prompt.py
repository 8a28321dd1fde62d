"""Capabilities, prompt, limit and finish reason of endpoints that continue one raw prompt and have no chat."""

from collections.abc import Mapping

from providers.capabilities import FAN_OUT, NATIVE, PREFIXED, UNSCORED_PROMPT, Cell, refused
from providers.completion import FinishReason
from providers.dialects.shared.prompt import native_prompt
from providers.dialects.shared.request_body import RequestBody
from providers.failure import Refusal
from providers.target import Target

_TEXT_ONLY = refused("it takes prompts as text only")
IGNORED = refused("it would be ignored there")
"""The cell of unknown fields, where the server does not report them."""

ONE_RAW_PROMPT: Mapping[str, Cell] = {
    "prompt": NATIVE,
    "prompt.batch": FAN_OUT,
    "prompt.tokens": _TEXT_ONLY,
    "prompt.token_batch": _TEXT_ONLY,
    "messages": refused("it takes raw prompts only"),
    "n": FAN_OUT,
    "echo": PREFIXED,
    "echo.logprobs": UNSCORED_PROMPT,
}
"""Cells of endpoints whose calls hold one prompt as text and have one answer."""


def prompt_text(draft: RequestBody) -> str:
    """Return the prompt of a call. Raises Refusal for token ids, several prompts and an empty text."""
    text = native_prompt(draft.target, draft.table, draft.request.prompt)
    if not isinstance(text, str):
        raise TypeError("one prompt as text is all that a call takes")
    if not text:
        raise Refusal("prompt", f"{draft.target.name} does not take an empty prompt.", "invalid_value")
    return text


def needed_limit(draft: RequestBody) -> int:
    """Return the limit on the answer's tokens, the client's or the table's. Raises Refusal without either."""
    limit = draft.params.get("max_tokens", draft.target.max_output_tokens)
    if limit is None:
        message = f"{draft.target.name} needs 'max_tokens'; set it, or 'max_output_tokens' of the model in the table."
        raise Refusal("max_tokens", message, "invalid_value")
    if limit < 1:
        raise draft.invalid("max_tokens", "must be at least 1")
    return limit


def guess_finish(target: Target, limit: int, prompt: int | None, generated: int | None) -> FinishReason:
    """Return the finish reason where the vendor gives none: `length` if the limit or the window is used up."""
    written = generated or 0
    full = target.context_window is not None and (prompt or 0) + written >= target.context_window
    return "length" if written >= limit or full else "stop"
