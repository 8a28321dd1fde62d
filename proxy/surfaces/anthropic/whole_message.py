"""Builds the blocks of a non-streaming message, in the order that they have in a stream.

Source: `anthropic` 2.12.0 type `Message`, November 2026.
"""

from collections.abc import Iterable

from providers.completion import Choice
from providers.dialects.shared.read_json import parse_json
from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.anthropic.answer_members import citations_of, own_blocks
from proxy.surfaces.anthropic.calls import whole_calls
from proxy.surfaces.anthropic.thinking_blocks import whole_blocks
from proxy.surfaces.response.text_signature import extra_content, is_of_text, needed_back, without_signature
from proxy.surfaces.response.write_sse import utf8_json


def _details_of(choice: Choice) -> tuple[list[JsonObject], list[JsonObject]]:
    """Return the reasoning details of a non-streaming response, and the details that belong after its text."""
    details = without_signature(() if choice.extras is None else choice.extras.reasoning_details, choice.signature)
    if choice.reasoning:
        return [*details], []
    return [each for each in details if not is_of_text(each)], [each for each in details if is_of_text(each)]


def signatures_of_text(choice: Choice) -> JsonObject:
    """Return the signatures of the text of a non-streaming response. They are fields beside the blocks, because no
    block has a field for them."""
    fields: JsonObject = {} if choice.signature is None else {"extra_content": extra_content(choice.signature)}
    if choice.text and not choice.tool_calls and (signed := needed_back(_details_of(choice)[1])):
        fields["reasoning_details"] = signed
    return fields


def with_model_name(body: bytes, model: str) -> bytes:
    """Return the vendor's body with the gateway's name of the model."""
    message: JsonValue = parse_json(body)
    return utf8_json({**message, "model": model}) if isinstance(message, dict) else body


def blocks_of(choice: Choice, searches: Iterable[JsonObject] = ()) -> list[JsonObject]:
    """Return the blocks of a non-streaming response, in the order of a stream. `searches` are the blocks of searches by
    vendors other than Anthropic."""
    extras = choice.extras
    details, after_text = _details_of(choice)
    blocks = [*whole_blocks(choice.reasoning, details), *own_blocks(extras), *searches]
    if choice.text:
        block: JsonObject = {"type": "text", "text": choice.text}
        if cited := citations_of(extras):
            block["citations"] = [*cited]
        blocks.append(block)
    if choice.tool_calls or not choice.text:
        blocks += whole_blocks(None, after_text)
    return [*blocks, *whole_calls(choice.tool_calls, choice.finish_reason)]
