"""Writes prompts in the vendors' forms: unchanged, or wrapped into one user message of OpenAI's chat shape.

For endpoints without a chat, it also has their capabilities, their token limit and their finish reason.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise, zip_longest
from typing import Final

from providers.adaptation.merged_messages import BETWEEN
from providers.capabilities import FAN_OUT, NATIVE, PREFIXED, UNSCORED_PROMPT, Capabilities, Cell, refused
from providers.completion import FinishReason
from providers.dialects.shared.request_body import RequestBody
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from providers.target import Target
from providers.unified_request import INSTRUCTION_ROLES, ChatPrompt, Prompt, TextPrompt, TokenPrompt, UnifiedRequest

IMAGE_MARKER = "<image>"


def joined_texts(role: JsonValue, texts: Iterable[str]) -> str:
    """Join the texts of a message, for vendors that accept only one text per message.

    The texts of a tool's result are joined by line ends. Instructions are joined as paragraphs, because clients compose
    them from several texts (Claude Code sends three), unless white space shows that a text continues the previous one.
    The texts of any other message are joined without a separator.
    """
    non_empty = [text for text in texts if text]
    if role in INSTRUCTION_ROLES:
        separators = [
            BETWEEN if not (text[-1].isspace() or after[0].isspace()) else "" for text, after in pairwise(non_empty)
        ]
        return "".join([text + separator for text, separator in zip_longest(non_empty, separators, fillvalue="")])
    return ("\n" if role == "tool" else "").join(non_empty)


EMPTY_RESULT: Final = "(empty)"
"""The text of a tool's result without content, for vendors that refuse an empty or blank result."""


def loaded_tools(names: Sequence[str]) -> str:
    """Return the result of a tool search as text, for vendors that get the definitions of all tools from the
    beginning."""
    return f"Loaded tools: {', '.join(names)}" if names else "No tools were found."


def failed_text(text: str) -> str:
    """Return the text of a tool's result that is an error, for vendors that have no field for failures."""
    return f"The call failed: {text}" if text.strip() else "The call failed."


def native_prompt(target: Target, table: Capabilities, prompt: Prompt) -> JsonValue:
    """Return the `prompt` field of a call. Raises Refusal for a form of prompt that one call cannot have."""
    match prompt:
        case TextPrompt((text,), listed):
            return [text] if listed and table["prompt.batch"].native else text
        case TextPrompt(texts):
            _require(target, table, "prompt.batch")
            return list(texts)
        case TokenPrompt((sequence,), listed):
            _require(target, table, "prompt.tokens")
            return [[*sequence]] if listed and table["prompt.token_batch"].native else list(sequence)
        case TokenPrompt(sequences):
            _require(target, table, "prompt.token_batch")
            return [list(sequence) for sequence in sequences]
        case ChatPrompt():
            raise TypeError("a conversation is no prompt")


def _require(target: Target, table: Capabilities, feature: str) -> None:
    cell = table[feature]
    if not cell.native:
        reason = cell.how if cell.refused else "it takes one prompt a call"
        raise Refusal("prompt", f"This form of 'prompt' is not supported by {target.name}: {reason}.")


def wrapped_messages(target: Target, table: Capabilities, request: UnifiedRequest) -> list[JsonValue]:
    """Return one user message that holds the prompt. Raises Refusal for a prompt that cannot be sent as a chat.

    The model replies to the prompt instead of continuing it. No system prompt is added.
    """
    prompt = request.prompt
    if isinstance(prompt, TokenPrompt):
        _require(target, table, "prompt.tokens")
    if not isinstance(prompt, TextPrompt) or len(prompt.texts) > 1:
        _require(target, table, "prompt.batch")
        raise TypeError("only prompts as text are put into a message")
    if not prompt.texts[0]:
        raise Refusal("prompt", f"{target.name} is called by chat and takes no empty prompt.", "invalid_value")
    images = request.params.get("images", ())
    content: JsonValue = prompt.texts[0]
    if any(images):
        content = image_parts(prompt.texts[0], images[0])
    return [{"role": "user", "content": content}]


def image_parts(text: str, images: tuple[str, ...]) -> list[JsonValue]:
    """Return the text as parts, with an image instead of each `<image>` marker. The surface has checked the number of
    images."""
    parts: list[JsonValue] = []
    for position, text_part in enumerate(text.split(IMAGE_MARKER)):
        if position:
            image: JsonObject = {"url": images[position - 1]}
            parts.append({"type": "image_url", "image_url": image})
        if text_part:
            parts.append({"type": "text", "text": text_part})
    return parts


# Endpoints with one raw prompt per call and no chat -------------------------------------------------------------------

_TEXT_ONLY = refused("it takes prompts as text only")
IGNORED = refused("it would be ignored there")
"""The cell of unknown fields for servers that silently ignore unknown fields."""

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
"""Cells of endpoints whose calls have one prompt as text and one choice."""


def prompt_text(draft: RequestBody) -> str:
    """Return the prompt of a call. Raises Refusal for token ids, several prompts and an empty text."""
    text = native_prompt(draft.target, draft.table, draft.request.prompt)
    if not isinstance(text, str):
        raise TypeError("one prompt as text is all that a call takes")
    if not text:
        raise Refusal("prompt", f"{draft.target.name} does not take an empty prompt.", "invalid_value")
    return text


def required_limit(draft: RequestBody) -> int:
    """Return the token limit of the response, from the client or the configuration. Raises Refusal if both lack it."""
    limit = draft.params.get("max_tokens", draft.target.max_output_tokens)
    if limit is None:
        message = f"{draft.target.name} needs 'max_tokens'; set it, or configure 'max_output_tokens' of the model."
        raise Refusal("max_tokens", message, "invalid_value")
    if limit < 1:
        raise draft.invalid("max_tokens", "must be at least 1")
    return limit


def guess_finish(target: Target, limit: int, prompt: int | None, generated: int | None) -> FinishReason:
    """Return the finish reason for vendors that send no reason: `length` if the limit or the context window is used up,
    else `stop`."""
    written = generated or 0
    full = target.context_window is not None and (prompt or 0) + written >= target.context_window
    return "length" if written >= limit or full else "stop"
