"""Messages and contents for the tests of conversations in Gemini's API."""

from providers.json_types import JsonObject, JsonValue


def text(words: str, **more: JsonValue) -> JsonObject:
    return {"text": words, **more}


def turn(role: str, *parts: JsonValue) -> JsonObject:
    return {"role": role, "parts": [*parts]}


def says(words: str) -> JsonObject:
    return {"role": "assistant", "content": words}


def calls(*made: tuple[str, str, str], content: JsonValue = None) -> JsonObject:
    listed: list[JsonValue] = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for call_id, name, arguments in made
    ]
    return {"role": "assistant", "content": content, "tool_calls": listed}


def result(call_id: str, content: JsonValue) -> JsonObject:
    return {"role": "tool", "tool_call_id": call_id, "content": content}
