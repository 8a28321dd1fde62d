"""Adds the gateway's instructions to a conversation or to the text of a prompt."""

from collections.abc import Sequence
from dataclasses import replace

from providers.constraints.constraint_styles import Unenforceable
from providers.json_types import JsonObject
from providers.unified_request import INSTRUCTION_ROLES, ChatPrompt, Prompt, TextPrompt


def behind_instructions(messages: Sequence[JsonObject]) -> int:
    """Return the index of the first message that is not an instruction to the model; the number of messages if all
    messages are instructions."""
    return next(
        (at for at, message in enumerate(messages) if message.get("role") not in INSTRUCTION_ROLES), len(messages)
    )


def with_instructions(prompt: Prompt, words: str) -> Prompt:
    """Return the prompt with instructions for the model. Raises Unenforceable for a prompt that is not text."""
    match prompt:
        case ChatPrompt(messages):
            # The gateway's instructions follow the client's own, so that the prompt's prefix in the vendor's cache
            # stays unchanged.
            first = behind_instructions(messages)
            instruction: JsonObject = {"role": "system", "content": words}
            return ChatPrompt((*messages[:first], instruction, *messages[first:]))
        case TextPrompt(texts):
            return replace(prompt, texts=tuple([f"{text}\n\n{words}" for text in texts]))
        case _:
            raise Unenforceable("its prompt would have to tell it, and is no text")
