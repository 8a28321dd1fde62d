"""Ollama's chat, which cannot force a call of a tool and enforces a format instead.

Source: Ollama `api/types.go` and `server/routes.go`, August 2026.
"""

import orjson
from typing_extensions import override

from providers.json_types import JsonObject
from tests.e2e.agents.agent_plan import StrictVendor
from tests.support.http_scripts import body_answer, json_answer
from tests.support.vendor_script import Received, Script


class Ollama(StrictVendor):
    """`POST /api/chat`."""

    @override
    def _refusal(self, message: str) -> Script:
        return json_answer(400, {"error": message})

    @override
    def _answer(self, received: Received, body: JsonObject) -> Script:
        move = self._plan.after(0)
        said: list[JsonObject] = [{"content": move.text}]
        if move.calls:
            name, given = move.calls[0]
            called: JsonObject = {"name": name, "arguments": given}
            text = orjson.dumps(called).decode()
            said = [{"content": text[:9]}, {"content": text[9:]}]
            if not body.get("format"):
                said = [{"content": "", "tool_calls": [{"function": called}]}]
        if not body.get("stream"):
            said = [{**said[-1], "content": "".join([str(each["content"]) for each in said])}]
        lines: list[JsonObject] = [{"message": {"role": "assistant", **each}, "done": False} for each in said]
        lines[-1] |= {"done": True, "done_reason": "stop", "prompt_eval_count": 10, "eval_count": 5}
        return body_answer(200, b"".join([orjson.dumps({"model": "any", **line}) + b"\n" for line in lines]))
