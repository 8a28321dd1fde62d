"""A Gemini service that checks conversations as the real ones do, and responds as an agent's model.

Its 400s are quoted from public issue threads: langgenius/dify-official-plugins#2088 (a call without signature),
"Corrupted thought signature.", "Please ensure that the number of function response parts is equal to the number of
function call parts of the function call turn."; pydantic-ai 2.68.0 on parts that hold only a signature.
"""

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from providers.dialects.shared.thought_signatures import SKIP_SIGNATURE
from providers.json_types import JsonObject, JsonValue


class BadRequest(ValueError):
    """The service's 400."""


@dataclass
class AgentService:
    """One of Google's services with a model that calls functions for some turns, then responds with text.

    `modern` is true for a model of Gemini 3. `issued` are the signatures of this service. `skipped` counts the calls
    that came back with the documented replacement for a signature.
    """

    name: str
    modern: bool
    issued: dict[str, str] = field(default_factory=dict)
    skipped: int = 0

    def answer(self, body: Mapping[str, Any], turn: int) -> JsonObject:
        """Check a request and return the response."""
        self.check(body["contents"])
        parts = [*self._parts(turn)]
        return {
            "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 4, "totalTokenCount": 13},
            "modelVersion": "gemini",
            "responseId": f"{self.name}-{turn}",
        }

    def _parts(self, turn: int) -> Iterator[JsonValue]:
        yield {"text": f"Thinking of {turn}.", "thought": True}
        if turn == 4:
            yield {"text": f"It is {turn} °C."}
            yield {"text": "", "thoughtSignature": self._sign(f"text {turn}")}
            return
        if turn % 2:
            yield {"text": "I look. ", **({} if self.modern else {"thoughtSignature": self._sign(f"text {turn}")})}
        signature = {"thoughtSignature": self._sign(f"call {turn}")} if self.modern else {}
        yield {"functionCall": {**self._id(f"{turn}a"), "name": "look", "args": {"at": turn}}, **signature}
        if turn % 2:
            # Only the first of parallel calls is signed.
            yield {"functionCall": {**self._id(f"{turn}b"), "name": "listen", "args": {}}}

    def _id(self, name: str) -> JsonObject:
        return {"id": f"fc-{name}"} if self.modern else {}

    def _sign(self, what: str) -> str:
        signature = base64.b64encode(f"{self.name}?>{what}".encode()).decode()
        self.issued[signature] = what
        return signature

    # The rules --------------------------------------------------------------------------------------------------------

    def check(self, contents: list[Any]) -> None:
        """Raise BadRequest for a conversation that the service refuses."""
        calls: list[Any] = []
        for number, content in enumerate(contents):
            parts = content["parts"]
            if not parts:
                raise BadRequest("contents.parts must not be empty.")
            results = [part["functionResponse"] for part in parts if "functionResponse" in part]
            if results and len(results) != len(parts):
                raise BadRequest("functionResponse parts stand in a content of their own.")
            if len(results) != len(calls):
                raise BadRequest("The number of function response parts is not that of the function call parts.")
            for call, result in zip(calls, results, strict=True):
                if call["name"] != result["name"] or call.get("id") != result.get("id"):
                    raise BadRequest("A function response does not match its call.")
            for part in parts:
                self._check_part(part)
            calls = [part["functionCall"] for part in parts if "functionCall" in part]
            if calls and content["role"] != "model":
                raise BadRequest("Only the model calls functions.")
            self._check_first_call(parts, number)

    def _check_part(self, part: dict[str, Any]) -> None:
        kinds = part.keys() - {"thoughtSignature", "thought", "videoMetadata"}
        if len(kinds) != 1 or part.get("text") == "":
            raise BadRequest("Invalid thought signature.")
        signature = part.get("thoughtSignature")
        if signature not in (None, SKIP_SIGNATURE, *self.issued):
            raise BadRequest("Corrupted thought signature.")
        about = self.issued.get(signature or "", "")
        if about and about.startswith("call") is not ("functionCall" in part):
            raise BadRequest("Corrupted thought signature.")

    def _check_first_call(self, parts: list[dict[str, Any]], number: int) -> None:
        first = next((part for part in parts if "functionCall" in part), None)
        if first is None:
            return
        signature = first.get("thoughtSignature")
        if not self.modern:
            if signature == SKIP_SIGNATURE or "id" in first["functionCall"]:
                raise BadRequest('Invalid JSON payload received. Unknown name "id".')
            return
        if signature is None:
            name = first["functionCall"]["name"]
            raise BadRequest(f"The function call `{name}` in the {number}. content is missing a thought_signature.")
        self.skipped += signature == SKIP_SIGNATURE
