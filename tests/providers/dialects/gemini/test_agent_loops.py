"""Agent loops of five turns with reasoning and functions, with a service that checks the same rules as the real
ones."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import orjson
import pytest

from providers.completion import Choice
from providers.dialects.shared.thought_signatures import SKIP_SIGNATURE
from providers.emulation.collect_stream import Gatherer
from providers.json_types import JsonObject, JsonValue
from providers.target import Target
from tests.providers.dialects.gemini.kit import DIALECT, OLD, TARGET, VERTEX, tool
from tests.providers.dialects.gemini.vendor_rules import AgentService, BadRequest
from tests.providers.dialects.kit import chat_request, streamed, user
from tests.support.looped import looped

TOOLS = [tool("look", parameters={"type": "object"}), tool("listen")]

Client = Callable[[Choice], JsonObject]


def keeps_ids(choice: Choice) -> JsonObject:
    """Return the message that LangChain sends back."""
    calls: list[JsonValue] = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in choice.tool_calls
    ]
    message: JsonObject = {"role": "assistant", "content": choice.text or None}
    return {**message, "tool_calls": calls} if calls else message


def keeps_extra_content(choice: Choice) -> JsonObject:
    """Return the message that openai-agents and Vercel's compatible provider send back."""
    message = keeps_ids(choice)
    for given, call in zip(message.get("tool_calls") or [], choice.tool_calls, strict=True):  # type: ignore
        given.update(call.extra or {})  # type: ignore[union-attr]
    if choice.signature is not None:
        message["extra_content"] = {"google": {"thought_signature": choice.signature}}
    return message


def keeps_everything(choice: Choice) -> JsonObject:
    """Return the message of a client that sends the whole message back, such as OpenRouter's."""
    assert choice.extras is not None
    details: list[JsonValue] = [*choice.extras.reasoning_details]
    return {**keeps_extra_content(choice), "reasoning_content": choice.reasoning, "reasoning_details": details}


def keeps_signatures_beside_own_ids(choice: Choice) -> JsonObject:
    """Return the message of a client that numbers calls itself."""
    message = keeps_extra_content(choice)
    for number, call in enumerate(message.get("tool_calls") or []):  # type: ignore[arg-type]
        call["id"] = f"call_{choice.text[:2]}{number}"  # type: ignore[index,call-overload]
    return message


def ask(target: Target, service: AgentService, messages: list[JsonObject], turn: int, stream: bool) -> Choice:
    request = replace(chat_request(*messages, tools=TOOLS), stream=stream)
    sent = DIALECT.encode(request, target)
    answer = service.answer(orjson.loads(sent.body), turn)
    if not stream:
        return DIALECT.decode(sent, orjson.dumps(answer)).choices[0]
    gatherer = Gatherer(1)
    for event in streamed(sent, _as_stream(answer), 11):
        gatherer.add(event)
    return gatherer.completion().choices[0]


def _as_stream(answer: JsonObject) -> bytes:
    """Return a response as a stream of one part each."""
    parts = cast(Any, answer)["candidates"][0]["content"]["parts"]
    objects: list[JsonObject] = [
        {**answer, "candidates": [{"content": {"role": "model", "parts": [part]}}]} for part in parts
    ]
    objects.append({**answer, "candidates": [{"finishReason": "STOP"}]})
    return b"".join([b"data: %b\r\n\r\n" % orjson.dumps(one) for one in objects])


def reply(messages: list[JsonObject], choice: Choice, client: Client) -> None:
    message = client(choice)
    messages.append(message)
    for call in reversed(message.get("tool_calls") or []):  # type: ignore[arg-type]
        content: JsonValue = [{"type": "text", "text": "3 °C"}]
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})  # type: ignore
    if not message.get("tool_calls"):
        messages.append(user("And tomorrow?"))


@looped("stream", [False, True], ids=["whole", "streamed"])
@looped("client", [keeps_ids, keeps_extra_content, keeps_everything])
@looped("target", [TARGET, VERTEX, OLD], ids=["gemini", "vertex", "2.5"])
def test_five_turns_of_thinking_and_functions_keep_their_signatures(
    target: Target, client: Client, stream: bool
) -> None:
    service, messages = AgentService("own", target is not OLD), [user("Is it cold?")]
    for turn in range(8):
        choice = ask(target, service, messages, turn, stream)
        assert choice.reasoning == f"Thinking of {turn}."
        assert choice.finish_reason == ("stop" if turn == 4 else "tool_calls")
        reply(messages, choice, client)
    assert service.skipped == 0


def test_signatures_stay_with_their_calls_where_a_client_numbers_them_itself() -> None:
    service, messages = AgentService("own", True), [user("Is it cold?")]
    for turn in range(4):
        reply(messages, ask(TARGET, service, messages, turn, False), keeps_signatures_beside_own_ids)
        messages.append(user("Go on."))
    assert service.skipped == 0


@looped("client", [keeps_ids, keeps_extra_content, keeps_everything])
@looped(("first", "second"), [(TARGET, VERTEX), (VERTEX, TARGET), (TARGET, OLD), (OLD, TARGET)])
def test_a_conversation_may_go_on_at_another_service_and_model(first: Target, second: Target, client: Client) -> None:
    messages = [user("Is it cold?")]
    services = {id(first): AgentService("one", first is not OLD), id(second): AgentService("two", second is not OLD)}
    if (first is VERTEX) == (second is VERTEX):
        # One service reads its own signatures, whatever the model.
        services[id(second)].issued = services[id(first)].issued
    for turn in range(8):
        target = first if turn < 5 else second
        reply(messages, ask(target, services[id(target)], messages, turn, False), client)
    expected = 0 if second is OLD or ((first is VERTEX) == (second is VERTEX) and first is not OLD) else 4
    assert services[id(second)].skipped >= expected


def test_the_service_refuses_what_the_real_one_does() -> None:
    service = AgentService("own", True)
    call: JsonObject = {"functionCall": {"id": "a", "name": "f", "args": {}}, "thoughtSignature": SKIP_SIGNATURE}
    done: JsonObject = {"functionResponse": {"id": "a", "name": "f", "response": {}}}

    def refused(*contents: JsonObject) -> str:
        with pytest.raises(BadRequest) as caught:
            service.check([*contents])
        return str(caught.value)

    def content(role: str, *parts: JsonObject) -> JsonObject:
        return {"role": role, "parts": [*parts]}

    service.check([content("user", {"text": "hi"}), content("model", call), content("user", done)])
    assert "must not be empty" in refused(content("user"))
    unsigned: JsonObject = {"functionCall": call["functionCall"]}
    assert "missing a thought_signature" in refused(content("model", unsigned))
    assert "Corrupted" in refused(content("model", {**call, "thoughtSignature": "AAAA"}))
    assert "Invalid" in refused(content("model", {"text": "", "thoughtSignature": SKIP_SIGNATURE}))
    assert "number of function response" in refused(content("model", call), content("user", {"text": "so?"}))
    assert "of their own" in refused(content("model", call), content("user", done, {"text": "so?"}))
    assert "Only the model" in refused(content("user", call))
    other: JsonObject = {"functionResponse": {"id": "b", "name": "f", "response": {}}}
    assert "does not match" in refused(content("model", call), content("user", other))
    assert "Unknown name" in str(_old_refusal(content("model", call)))


def _old_refusal(content: JsonObject) -> BadRequest:
    with pytest.raises(BadRequest) as caught:
        AgentService("old", False).check([content])
    return caught.value
