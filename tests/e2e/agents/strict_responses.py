"""OpenAI's Responses, which checks that an agent's calls, results and encrypted reasoning come back unchanged.

Sources: OpenAI's API reference, its guides to reasoning and function calling, November 2026.
"""

from collections.abc import Iterator

import orjson
from typing_extensions import override

from providers.json_types import JsonObject, JsonValue
from tests.e2e.agents.agent_plan import AgentPlan, Broken, Move, StrictOpenAI, objects
from tests.support.http_scripts import json_answer, sse_answer
from tests.support.vendor_script import Received, Script


class OpenAIResponses(StrictOpenAI):
    """`POST /v1/responses` of a model that reasons. It stores nothing."""

    @override
    def _answer(self, received: Received, body: JsonObject) -> Script:
        move = self._plan.after(_check_items(objects(body.get("input")), self._plan))
        self.wire.thinking.append("reasoning" in body)
        return (
            sse_answer(_events(body, move))
            if body.get("stream")
            else json_answer(200, _response(body, move, "completed"))
        )


def _check_items(items: list[JsonObject], plan: AgentPlan) -> int:
    """Return the number of results. Raise Broken if the API would return 400."""
    pending: list[JsonValue] = []
    results = 0
    for place, item in enumerate(items):
        match item.get("type"):
            case "function_call":
                number = int(str(item["call_id"]).split("_")[1])
                if not any(each.get("type") == "reasoning" for each in items[:place]):
                    raise Broken("Item of type 'function_call' was provided without its required 'reasoning' item.")
                if str(item["name"]) not in [name for name, _ in plan.moves[number].calls]:
                    raise Broken(f"Unknown function {item['name']}")
                pending.append(item["call_id"])
            case "function_call_output":
                if item.get("call_id") not in pending:
                    raise Broken("No tool call found for function call output.")
                pending.remove(item["call_id"])
                results += 1
            case "reasoning":
                sealed = [move.signature for move in plan.moves]
                if item.get("encrypted_content") not in sealed:
                    raise Broken("The encrypted content could not be verified.")
            case _:
                pass
    if pending:
        raise Broken("No tool output found for function call.")
    return results


def _items(move: Move) -> list[JsonObject]:
    thought: JsonObject = {"type": "summary_text", "text": move.thought}
    made: list[JsonObject] = [
        {"type": "reasoning", "id": f"rs_{move.number}", "summary": [thought], "encrypted_content": move.signature}
    ]
    if move.text:
        part: JsonObject = {"type": "output_text", "text": move.text, "annotations": [], "logprobs": []}
        head: JsonObject = {"type": "message", "id": f"msg_{move.number}", "role": "assistant", "status": "completed"}
        made.append({**head, "content": [part]})
    for number, (name, given) in enumerate(move.calls):
        made.append(
            {
                "type": "function_call",
                "id": f"fc_{move.number}_{number}",
                "call_id": f"call_{move.number}_{number}",
                "name": name,
                "arguments": orjson.dumps(given).decode(),
                "status": "completed",
            }
        )
    return made


def _response(body: JsonObject, move: Move, status: str) -> JsonObject:
    usage: JsonObject = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 1},
        "total_tokens": 15,
    }
    return {
        "id": f"resp_{move.number}",
        "object": "response",
        "created_at": 1,
        "status": status,
        "model": body.get("model"),
        "output": [*_items(move)] if status == "completed" else [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage if status == "completed" else None,
    }


def _events(body: JsonObject, move: Move) -> Iterator[bytes]:
    for number, event in enumerate(_parts(body, move)):
        yield b"event: %b\ndata: %b\n\n" % (
            str(event["type"]).encode(),
            orjson.dumps({**event, "sequence_number": number}),
        )


def _parts(body: JsonObject, move: Move) -> Iterator[JsonObject]:
    for kind in ("created", "in_progress"):
        yield {"type": f"response.{kind}", "response": _response(body, move, "in_progress")}
    for index, item in enumerate(_items(move)):
        at: JsonObject = {"item_id": item["id"], "output_index": index}
        begun: JsonObject = {**item, **({"arguments": ""} if "arguments" in item else {}), "status": "in_progress"}
        begun |= {name: [] for name in ("content", "summary") if name in item}
        yield {"type": "response.output_item.added", "output_index": index, "item": begun}
        match item["type"]:
            case "message":
                (part,) = objects(item["content"])
                place: JsonObject = {**at, "content_index": 0}
                yield {"type": "response.content_part.added", **place, "part": {**part, "text": ""}}
                yield {"type": "response.output_text.delta", **place, "delta": part["text"], "logprobs": []}
                yield {"type": "response.output_text.done", **place, "text": part["text"], "logprobs": []}
                yield {"type": "response.content_part.done", **place, "part": part}
            case "function_call":
                yield {"type": "response.function_call_arguments.delta", **at, "delta": item["arguments"]}
                yield {"type": "response.function_call_arguments.done", **at, "arguments": item["arguments"]}
            case _:
                pass
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": _response(body, move, "completed")}
