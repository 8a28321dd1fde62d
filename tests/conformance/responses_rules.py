"""A fake vendor with OpenAI's Responses API and a model that reasons. The vendor refuses a conversation without the
encrypted reasoning of its turns.

OpenAI itself accepts such a conversation, and the model then reasons again: its guide "Reasoning models" recommends to
pass the items back (November 2026). OpenAI refuses a reasoning item without the item that followed it.
"""

from collections.abc import Iterator

import orjson

from providers.json_types import JsonObject
from tests.conformance.vendor_rules import FINAL, TURNS, ThinkingVendor, calls_of, listed, signed, thought
from tests.providers.dialects.responses.kit import events_of, sse


class OpenAIResponses(ThinkingVendor):
    """A model that supports tools only in the Responses API. Every turn has encrypted reasoning with a summary."""

    def items(self, turn: int) -> list[JsonObject]:
        """Return the output items of a turn."""
        reasoning: JsonObject = {
            "type": "reasoning",
            "id": f"rs_{turn}",
            "summary": [{"type": "summary_text", "text": thought(turn)}],
            "encrypted_content": signed(f"{turn}"),
        }
        if turn == TURNS:
            part: JsonObject = {"type": "output_text", "text": FINAL, "annotations": []}
            return [reasoning, {"type": "message", "id": "msg_1", "role": "assistant", "content": [part]}]
        calls: list[JsonObject] = [
            {
                "type": "function_call",
                "id": f"fc_{own}",
                "call_id": f"call_{own}",
                "name": name,
                # The model writes a space after each colon.
                "arguments": orjson.dumps(given).decode().replace(":", ": "),
            }
            for own, name, given in calls_of(turn)
        ]
        return [reasoning, *calls]

    def problem(self, body: JsonObject) -> str | None:
        if body.get("store") is not False or body.get("include") != ["reasoning.encrypted_content"]:
            return "the request is not stateless"
        given = [item for item in listed(body["input"]) if item.get("type") in ("reasoning", "function_call")]
        expected = [item for turn in range(1, self.turn(body)) for item in self.items(turn)]
        for item, own in zip(given, expected, strict=False):
            mine = {name: own[name] for name in ("encrypted_content", "name", "arguments", "call_id") if name in own}
            if {name: item.get(name) for name in mine} != mine:
                return f"{item} is not the item {own}"
        return None if len(given) == len(expected) else "an item is missing, or one too many"

    def turn(self, body: JsonObject) -> int:
        results = [item for item in listed(body["input"]) if item.get("type") == "function_call_output"]
        return 1 + len(results) // 2

    def whole(self, turn: int) -> JsonObject:
        usage: JsonObject = {"input_tokens": 9, "output_tokens": 9, "total_tokens": 18}
        output = [*self.items(turn)]
        return {"id": "resp_1", "object": "response", "status": "completed", "output": [*output], "usage": usage}

    def stream(self, turn: int) -> Iterator[bytes]:
        yield sse(*events_of(self.whole(turn)))
