"""Gemini, which checks the thought signatures of an agent's calls. Its streams end like the streams of Gemini 3: with a
part that contains only the signature of the text, in the event that has the sources of the text.

Source: ai.google.dev "Thought signatures" and "Grounding with Google Search", November 2026.
"""

import base64
from collections.abc import Iterator

import orjson
from typing_extensions import override

from providers.json_types import JsonObject, JsonValue
from tests.e2e.agents.agent_plan import (
    TRIP,
    AgentPlan,
    Broken,
    StrictVendor,
    object_of,
    objects,
)
from tests.support.http_scripts import json_answer, sse_answer
from tests.support.vendor_script import Received, Script

# Gemini --------------------------------------------------------------------------------------------------------------


class Gemini(StrictVendor):
    """`generateContent` and `streamGenerateContent` of gemini-3-flash, whose calls must be sent back with their
    signatures."""

    @override
    def _refusal(self, message: str) -> Script:
        return json_answer(400, {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}})

    @override
    def _answer(self, received: Received, body: JsonObject) -> Script:
        answer = self._content(body)
        if "streamGenerateContent" in received.target:
            return sse_answer(_gemini_frames(answer), headers=[("content-type", "text/event-stream")])
        return json_answer(200, answer)

    def _content(self, body: JsonObject) -> JsonObject:
        config = object_of(body.get("generationConfig"))
        results = _check_gemini_turns(objects(body.get("contents")), self._plan)
        declared = [
            declaration
            for tool in objects(body.get("tools"))
            for declaration in objects(tool.get("functionDeclarations"))
        ]
        own = [each for each in declared if self._plan.is_own(each)]
        if own:
            call: JsonObject = {"functionCall": {"id": "trip", "name": own[0]["name"], "args": TRIP}}
            return _candidate([{**call, "thoughtSignature": base64.b64encode(b"trip").decode()}])
        if not declared and self._plan.untooled is not None:
            return _candidate([{"text": self._plan.untooled}])
        self.wire.thinking.append(bool(object_of(config.get("thinkingConfig"))))
        move = self._plan.after(results)
        parts: list[JsonValue] = []
        if object_of(config.get("thinkingConfig")).get("includeThoughts"):
            parts.append({"text": move.thought, "thought": True})
        if move.text:
            parts.append({"text": move.text})
        for number, (name, given) in enumerate(move.calls):
            function: JsonObject = {"id": f"c_{move.number}_{number}", "name": name, "args": given}
            # Of parallel calls only the first is signed.
            signed: JsonObject = {} if number else {"thoughtSignature": move.signature}
            parts.append({"functionCall": function, **signed})
        return _candidate(parts)


def _candidate(parts: list[JsonValue]) -> JsonObject:
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
        "modelVersion": "gemini-3-flash-preview",
        "responseId": "r",
    }


def _check_gemini_turns(turns: list[JsonObject], plan: AgentPlan) -> int:
    """Return the number of results. Raise Broken if the API would return 400."""
    results = 0
    pending: list[str] = []
    for number, turn in enumerate(turns):
        parts = objects(turn.get("parts"))
        calls = [object_of(part["functionCall"]) for part in parts if "functionCall" in part]
        answers = [object_of(part["functionResponse"]) for part in parts if "functionResponse" in part]
        if len(answers) != len(pending):
            raise Broken("Please ensure that the number of function response parts is equal to the number of calls")
        results += len(answers)
        pending = [str(call["name"]) for call in calls]
        if calls:
            first = next(part for part in parts if "functionCall" in part)
            made = str(calls[0].get("id")).split("_")
            if "thoughtSignature" not in first:
                raise Broken(f"Function call is missing a thought_signature in functionCall parts: {number}")
            if first["thoughtSignature"] != plan.moves[int(made[1])].signature:
                raise Broken("Corrupted thought signature.")
    return results


def _gemini_frames(answer: JsonObject) -> Iterator[bytes]:
    candidate = objects(answer["candidates"])[0]
    parts = objects(object_of(candidate["content"])["parts"])
    for part in parts:
        held: JsonObject = {"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}]}
        yield b"data: " + orjson.dumps({**answer, **held}) + b"\r\n\r\n"
    said = "".join([str(part["text"]) for part in parts if "text" in part and not part.get("thought")])
    last: JsonObject = {"text": "", **({"thoughtSignature": _SIGNATURE} if said else {})}
    ended: JsonObject = {**candidate, "content": {"role": "model", "parts": [last]}}
    if said:
        ended["groundingMetadata"] = _grounding(said)
    yield b"data: " + orjson.dumps({**answer, "candidates": [ended]}) + b"\r\n\r\n"


_SIGNATURE = base64.b64encode(b"of the text").decode()


def _grounding(said: str) -> JsonObject:
    source: JsonObject = {"web": {"uri": "https://notes.example", "title": "Notes"}}
    segment: JsonObject = {"startIndex": 0, "endIndex": len(said.encode()), "text": said}
    return {
        "groundingChunks": [source],
        "groundingSupports": [{"segment": segment, "groundingChunkIndices": [0]}],
    }
