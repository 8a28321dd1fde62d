"""Prompts as vendors take them: as they are, or wrapped into one user message of OpenAI's chat shape."""

from providers.capabilities import Capabilities
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from providers.target import Target
from providers.unified_request import ChatPrompt, Prompt, TextPrompt, TokenPrompt, UnifiedRequest

IMAGE_MARKER = "<image>"


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
