"""Requests of clients' APIs to OpenAI's models, at each host that sells them, and their outcome."""

from collections.abc import Mapping
from typing import Any, Final, Literal

import orjson

from providers.json_types import JsonObject, JsonValue
from proxy.gateway.dry_run import explained, sent_calls
from proxy.routing.snapshot import ANYONE, Snapshot
from tests.proxy.kit.tables import snapshot

CHATS: Final = (
    "/v1/chat/completions",
    "/v4/beta/chat/completions",
    "/v5/chat/completions",
    "/inference/v1/chat/completions",
    "/api/v1/compatibility/openai/v1/chat/completions",
)
MESSAGES, RESPONSES = "/v1/messages", "/v1/responses"
HOSTS: Final = ("openai", "azure", "azv1", "openrouter")
HOST_NAMES: Final = {"openrouter": "openrouter/openai"}

Told = Literal["error", "drop"]


def _table(told: Told) -> Snapshot:
    return snapshot(f"""
defaults: {{on_unsupported: {told}}}
vendors:
  openai: {{api_key: k}}
  azure: {{api_key: k, base_url: "https://r.openai.azure.com", api_version: "2025-04-01-preview"}}
  azv1: {{profile: azure_v1, api_key: k, base_url: "https://r.openai.azure.com/openai/v1"}}
  openrouter: {{api_key: k}}
models: {{"openai/*": {{}}, "azure/*": {{}}, "azv1/*": {{}}, "openrouter/*": {{}}}}
""")


TABLES: Final[Mapping[Told, Snapshot]] = {"error": _table("error"), "drop": _table("drop")}


class Outcome:
    """The outcome of a request: the vendor's path and body, or the message of the refusal."""

    def __init__(self, path: str, model: str, body: Mapping[str, JsonValue], told: Told = "error") -> None:
        table = TABLES[told]
        asked = orjson.dumps({**body, "model": model})
        explanation = explained(table, ANYONE, path, asked)
        self.refusal = "" if explanation.error is None else explanation.error[1].decode()
        calls: Any = explanation.chosen  # calls of any kind
        self.dropped: tuple[str, ...] = calls.dropped if calls is not None else ()
        self.emulated: tuple[str, ...] = calls.emulated if calls is not None else ()
        sent = sent_calls(calls)[0] if calls is not None else None
        self.api = sent.url.partition("?")[0].rpartition("/")[2] if sent is not None else ""
        self.body: JsonObject = orjson.loads(sent.body) if sent is not None else {}


def asking(path: str, **fields: JsonValue) -> JsonObject:
    """Return a request in the API of a path, with fields under their names in chats."""
    if path != RESPONSES:
        limit: JsonObject = {"max_tokens": 2000} if path == MESSAGES else {}
        return {"messages": [{"role": "user", "content": "hi"}], **limit, **fields}
    effort = fields.pop("reasoning_effort", None)
    reasoning: JsonObject = {} if effort is None else {"reasoning": {"effort": effort}}
    return {"input": "hi", **reasoning, **fields}


def named(host: str, model: str) -> str:
    return f"{HOST_NAMES.get(host, host)}/{model}"
