"""Conversations of Converse's tests: messages as clients send them, and their translation for a model."""

from providers.dialects.bedrock.converse_messages import BedrockConversation
from providers.dialects.bedrock.converse_models import UNKNOWN_MODEL, ConverseModel, converse_model
from providers.dialects.bedrock.converse_tools import BedrockToolNames
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from tests.providers.kit import refusal_of

PNG = "data:image/png;base64,iVBORw0KGgo="
PNG_BLOCK: JsonObject = {"image": {"format": "png", "source": {"bytes": "iVBORw0KGgo="}}}


def part(words: str, **more: JsonValue) -> JsonObject:
    return {"type": "text", "text": words, **more}


def image(url: str) -> JsonObject:
    return {"type": "image_url", "image_url": {"url": url, "detail": "low"}}


def assistant(content: JsonValue, *calls: JsonObject, **more: JsonValue) -> JsonObject:
    message: JsonObject = {"role": "assistant", "content": content, **more}
    return {**message, "tool_calls": [*calls]} if calls else message


def call(name: str = "now", arguments: str = "{}", number: str = "call_1") -> JsonObject:
    return {"id": number, "type": "function", "function": {"name": name, "arguments": arguments}}


def result(content: JsonValue, number: str = "call_1", **more: JsonValue) -> JsonObject:
    return {"role": "tool", "tool_call_id": number, "content": content, **more}


CLAUDE, LLAMA = converse_model("anthropic.claude-haiku-4-5"), converse_model("meta.llama4-maverick-17b-instruct-v1:0")
NOVA, QWEN = converse_model("amazon.nova-pro-v1:0"), converse_model("qwen.qwen3-vl-235b-a22b")
WRITER = converse_model("writer.palmyra-x5-v1:0")
POINT: JsonObject = {"cachePoint": {"type": "default"}}
SIGNED: JsonObject = {"type": "reasoning.text", "text": "Hm.", "signature": "EqQB", "format": "anthropic-claude-v1"}
HIDDEN: JsonObject = {"type": "reasoning.encrypted", "data": "AAEC", "format": "anthropic-claude-v1"}


def read(*messages: JsonValue, param: str = "messages", model: ConverseModel = UNKNOWN_MODEL) -> BedrockConversation:
    conversation = BedrockConversation(BedrockToolNames(()), param, model)
    conversation.read(messages)
    return conversation


def refusal_for(*messages: JsonValue, param: str = "messages", model: ConverseModel = UNKNOWN_MODEL) -> Refusal:
    return refusal_of(read, *messages, param=param, model=model)


def file(name: JsonValue, data: str) -> JsonObject:
    return {"type": "file", "file": {"filename": name, "file_data": data}}
