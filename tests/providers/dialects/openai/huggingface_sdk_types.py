"""Check chats of Hugging Face's router and servers against the vendor's own types (`huggingface_hub`).

The types follow the fields that the servers accept, but also accept unknown ones. Unknown fields outside the messages
are checked here.
"""

import dataclasses
import json

from huggingface_hub import (  # type: ignore[import-not-found,unused-ignore]
    ChatCompletionInput,
    ChatCompletionOutput,
    ChatCompletionStreamOutput,
)

_MEMBERS = {member.name for member in dataclasses.fields(ChatCompletionInput)}


def check_body(operation: str, body: bytes) -> None:
    """Raise for anything that the vendor's client has no field for."""
    assert operation == "chat", operation
    sent = json.loads(body)
    assert sent.keys() <= _MEMBERS, sent.keys() - _MEMBERS
    ChatCompletionInput.parse_obj_as_instance(sent)


def check_answer(body: bytes) -> None:
    _known(json.loads(body), ChatCompletionOutput)


def check_events(payloads: list[bytes]) -> None:
    for payload in payloads:
        _known(json.loads(payload), ChatCompletionStreamOutput)


def _known(answer: dict[str, object], kind: type) -> None:
    assert {member.name for member in dataclasses.fields(kind)} - {"usage"} <= answer.keys(), answer.keys()
    kind.parse_obj_as_instance(answer)  # type: ignore[attr-defined]  # of the SDK's base
