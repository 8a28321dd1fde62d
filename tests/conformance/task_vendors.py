"""A fake of every vendor's embeddings and rankings. It responds in the wire format of the request."""

import base64
import struct
from collections.abc import Callable, Mapping
from typing import cast
from urllib.parse import urlsplit

from providers.dialects.task_matrix import TaskMatrixEntry, task_entries
from providers.json_types import JsonObject, JsonValue
from providers.profiles.load_profiles import load_profiles
from providers.unified_request import Task
from tests.support.http_scripts import json_answer
from tests.support.vendor_script import Received, Script

ENTRIES = [entry for entry in task_entries(load_profiles().values()) if entry.profile != "mock"]
ARN = "arn:aws:bedrock:eu-west-1::foundation-model/"


def vector_of(text: str) -> list[float]:
    """Return the vector that every fake gives for a text; its numbers are exact as single-precision floats."""
    return [float(len(text)), ord(text[0]) / 4]


def table() -> str:
    """Return a configuration with every vendor and its example models at the port PORT, each under its own path."""
    lines = ["vendors:"]
    for profile in dict.fromkeys(entry.profile for entry in ENTRIES):
        owner = "/projects/p" if profile == "watsonx" else ""
        lines.append(
            f'  {profile}: {{api_key: k, base_url: "http://127.0.0.1:PORT/{profile}{owner}", allow_private: true}}'
        )
    lines.append("models:")
    models = {f"{entry.profile}/{entry.model}": entry for entry in ENTRIES}
    for name, entry in models.items():
        arn = entry.wire.form == "bedrock"
        lines.append(f'  "{name}": {{upstream_model: "{ARN if arn else ""}{entry.model}"}}')
    return "\n".join(lines) + "\n"


def answer(request: Received) -> Script:
    """Respond as the vendor that the path names."""
    path = urlsplit(request.target).path
    body = cast(JsonObject, request.json())
    profile = path.split("/")[1]
    forms = {entry.wire.form for entry in ENTRIES if entry.profile == profile}
    ranking = path.endswith("/rerank")
    known = _RANKINGS if ranking else _VECTORS
    (form,) = [form for form in forms & known.keys() if _fits(form, path, body)]
    made = known[form](body)
    headers = [("x-amzn-bedrock-input-token-count", "5")] if form == "bedrock_cohere" else []
    return json_answer(200, made, headers)


def _fits(form: str, path: str, body: JsonObject) -> bool:
    """Return whether a call has the format `form`, for vendors that have several."""
    wanted = {
        "bedrock_titan": "inputText" in body,
        "bedrock_cohere": "texts" in body,
        "vertex": path.endswith(":predict"),
        "vertex_content": path.endswith(":embedContent"),
    }
    return wanted.get(form, True)


def _openai(body: JsonObject) -> JsonValue:
    data: list[JsonValue] = []
    for index, each in enumerate(cast("list[str | list[int]]", body["input"])):
        vector = vector_of(each if isinstance(each, str) else "".join(map(chr, each)))
        shown: JsonValue = [*vector]
        if body.get("encoding_format") == "base64":
            shown = base64.b64encode(struct.pack("<2f", *vector)).decode()
        data.append({"index": index, "embedding": shown})
    return {"data": data, "usage": {"prompt_tokens": 5, "total_tokens": 5}}


def _plain(texts: JsonValue) -> list[JsonValue]:
    return [[*vector_of(text)] for text in cast("list[str]", texts)]


def _gemini(body: JsonObject) -> JsonValue:
    requests = cast("list[dict[str, dict[str, list[dict[str, str]]]]]", body["requests"])
    texts: JsonValue = [each["content"]["parts"][0]["text"] for each in requests]
    return {"embeddings": [{"values": vector} for vector in _plain(texts)], "usageMetadata": {"promptTokenCount": 5}}


def _vertex(body: JsonObject) -> JsonValue:
    texts: JsonValue = [each["content"] for each in cast("list[dict[str, str]]", body["instances"])]
    statistics: JsonObject = {"token_count": 5}
    return {"predictions": [{"embeddings": {"values": each, "statistics": statistics}} for each in _plain(texts)]}


def _content(body: JsonObject) -> JsonValue:
    text = cast("dict[str, list[dict[str, str]]]", body["content"])["parts"][0]["text"]
    return {"embedding": {"values": _plain([text])[0]}, "usageMetadata": {"promptTokenCount": 5}}


_VECTORS: Mapping[str, Callable[[JsonObject], JsonValue]] = {
    "openai": _openai,
    "bedrock_titan": lambda body: {"embedding": _plain([body["inputText"]])[0], "inputTextTokenCount": 5},
    "bedrock_cohere": lambda body: {"embeddings": {"float": _plain(body["texts"])}},
    "cohere": lambda body: {
        "embeddings": {"float": _plain(body["texts"])},
        "meta": {"billed_units": {"input_tokens": 5}},
    },
    "gemini": _gemini,
    "nomic": lambda body: {"embeddings": _plain(body["texts"]), "usage": {"total_tokens": 5}},
    "ollama": lambda body: {"embeddings": _plain(body["input"]), "prompt_eval_count": 5},
    "tei": lambda body: _plain(body["inputs"]),
    "vertex": _vertex,
    "vertex_content": _content,
    "watsonx": lambda body: {
        "results": [{"embedding": vector} for vector in _plain(body["inputs"])],
        "input_token_count": 5,
    },
}


def _scores(member: str, count: int) -> list[JsonValue]:
    return [{"index": index, member: index / 8} for index in range(count)]


def _counted(name: str) -> Callable[[JsonObject], int]:
    return lambda body: len(cast("list[JsonValue]", body[name]))


_RANKINGS: Mapping[str, Callable[[JsonObject], JsonValue]] = {
    "ranked": lambda body: {"results": _scores("relevance_score", _counted("documents")(body))},
    "tei": lambda body: _scores("score", _counted("texts")(body)),
    "sglang": lambda body: _scores("score", _counted("documents")(body)),
    "bedrock": lambda body: {"results": _scores("relevanceScore", _counted("sources")(body))},
    "watsonx": lambda body: {"results": _scores("score", _counted("inputs")(body))},
}

EMBEDDING = [entry for entry in ENTRIES if entry.task is Task.EMBEDDINGS]
RANKING = [entry for entry in ENTRIES if entry.task is Task.RERANK]


def named(entry: TaskMatrixEntry) -> str:
    return f"{entry.profile}/{entry.model}"
