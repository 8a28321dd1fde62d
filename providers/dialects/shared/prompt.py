"""Prompts as vendors take them: as they are, wrapped into one user message of OpenAI's chat shape, or as the only thing
that an endpoint without chat continues; such an endpoint's capabilities, limit and finish reason."""

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
    """Return the texts of a message as one, for vendors that take one only.

    The texts of a tool's result are several, each on lines of its own. Instructions are several too, as clients
    compose them (Claude Code sends three): paragraphs, unless white space shows that one goes on with the one before.
    The texts of any other message are parts of one.
    """
    said = [text for text in texts if text]
    if role in INSTRUCTION_ROLES:
        gaps = [BETWEEN if not (text[-1].isspace() or after[0].isspace()) else "" for text, after in pairwise(said)]
        return "".join([text + gap for text, gap in zip_longest(said, gaps, fillvalue="")])
    return ("\n" if role == "tool" else "").join(said)


EMPTY_RESULT: Final = "(empty)"
"""The text of a tool's result without content, for vendors that refuse an empty or a blank one."""


def loaded_tools(names: Sequence[str]) -> str:
    """Return the result of a search for tools as text, for vendors that get the definitions of all tools at once."""
    return f"Loaded tools: {', '.join(names)}" if names else "No tools were found."


def failed_text(text: str) -> str:
    """Return the text of a tool's result that is an error, for vendors that have no field for that."""
    return f"The call failed: {text}" if text.strip() else "The call failed."


def native_prompt(target: Target, table: Capabilities, prompt: Prompt) -> JsonValue:
    """Return the `prompt` member of a call. Raises Refusal for a form that one call does not take."""
    match prompt:
        case TextPrompt((text,), listed):
            return [text] if listed and table["prompt.batch"].native else text
        case TextPrompt(texts):
            _need(target, table, "prompt.batch")
            return list(texts)
        case TokenPrompt((sequence,), listed):
            _need(target, table, "prompt.tokens")
            return [[*sequence]] if listed and table["prompt.token_batch"].native else list(sequence)
        case TokenPrompt(sequences):
            _need(target, table, "prompt.token_batch")
            return [list(sequence) for sequence in sequences]
        case ChatPrompt():
            raise TypeError("a conversation is no prompt")


def _need(target: Target, table: Capabilities, feature: str) -> None:
    cell = table[feature]
    if not cell.native:
        because = cell.how if cell.refused else "it takes one prompt a call"
        raise Refusal("prompt", f"This form of 'prompt' is not supported by {target.name}: {because}.")


def wrapped_messages(target: Target, table: Capabilities, request: UnifiedRequest) -> list[JsonValue]:
    """Return one user message that carries the prompt. Raises Refusal for a prompt that cannot be sent as a chat.

    The model answers the prompt instead of continuing it. No system prompt is added.
    """
    prompt = request.prompt
    if isinstance(prompt, TokenPrompt):
        _need(target, table, "prompt.tokens")
    if not isinstance(prompt, TextPrompt) or len(prompt.texts) > 1:
        _need(target, table, "prompt.batch")
        raise TypeError("only prompts as text are put into a message")
    if not prompt.texts[0]:
        raise Refusal("prompt", f"{target.name} is asked by chat and does not take an empty prompt.", "invalid_value")
    images = request.params.get("images", ())
    content: JsonValue = prompt.texts[0]
    if any(images):
        content = image_parts(prompt.texts[0], images[0])
    return [{"role": "user", "content": content}]


def image_parts(text: str, images: tuple[str, ...]) -> list[JsonValue]:
    """Return the text with an image in place of each `<image>` marker, as parts; the surface checked their number."""
    parts: list[JsonValue] = []
    for position, piece in enumerate(text.split(IMAGE_MARKER)):
        if position:
            image: JsonObject = {"url": images[position - 1]}
            parts.append({"type": "image_url", "image_url": image})
        if piece:
            parts.append({"type": "text", "text": piece})
    return parts


# One raw prompt a call, and no chat -----------------------------------------------------------------------------------

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
