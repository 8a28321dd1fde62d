"""What the endpoints share that go on with one raw prompt and have no chat: their cells, their prompt, their limit
and why an answer ended.

Never a vendor's field name.
"""

from collections.abc import Mapping

from providers.capabilities import FAN_OUT, NATIVE, PREFIXED, RANKED, Cell, refused
from providers.completion import FinishReason
from providers.dialect import Target
from providers.dialects.native_fields import Draft
from providers.dialects.openai_prompt import native_prompt
from providers.failure import Refusal

KEEP = "include_stop_str_in_output"

_TEXT_ONLY = refused("it takes prompts as text only")
NO_GRAMMAR = refused("it has no grammars")
IGNORED = refused("it would be ignored there")
"""What becomes of unknown fields where nobody says that they are."""

ONE_RAW_PROMPT: Mapping[str, Cell] = {
    "prompt": NATIVE,
    "prompt.batch": FAN_OUT,
    "prompt.tokens": _TEXT_ONLY,
    "prompt.token_batch": _TEXT_ONLY,
    "messages": refused("it takes raw prompts only"),
    "n": FAN_OUT,
    "echo": PREFIXED,
    "echo.logprobs": refused("it does not tell the log probabilities of a prompt"),
}
"""What holds where every call is one prompt as text with one answer."""

SCORED = RANKED
UNSCORED = refused("it has no log probabilities to choose by")
"""The two cells of `best_of`, by whether tokens come with their log probabilities."""


def raw_text(draft: Draft) -> str:
    """The prompt of a call. Raises Refusal for a form it does not take, an empty text among them."""
    text = native_prompt(draft.target, draft.table, draft.request.prompt)
    if not isinstance(text, str):
        raise TypeError("one prompt as text is all that a call takes")
    if not text:
        raise Refusal("prompt", f"{draft.target.name} does not take an empty prompt.", "invalid_value")
    return text


def needed_limit(draft: Draft) -> int:
    """The most tokens of an answer, where the vendor must be told: the client's number, else the table's. Raises
    Refusal without either."""
    limit = draft.params.get("max_tokens", draft.target.max_output_tokens)
    if limit is None:
        message = f"{draft.target.name} needs 'max_tokens'; set it, or 'max_output_tokens' of the model in the table."
        raise Refusal("max_tokens", message, "invalid_value")
    if limit < 1:
        raise draft.invalid("max_tokens", "must be at least 1")
    return limit


def likely_finish(target: Target, limit: int, prompt: int | None, generated: int | None) -> FinishReason:
    """Why a text ended where the vendor does not say: the limit did where all of it was used, or all of the window."""
    written = generated or 0
    full = target.context_window is not None and (prompt or 0) + written >= target.context_window
    return "length" if written >= limit or full else "stop"
