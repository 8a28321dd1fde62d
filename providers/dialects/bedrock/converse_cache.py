"""Cache points of a request to Bedrock's Converse, made from the cache markers of its parts.

A marker promises nothing about the answer, so one that has no place is left out: the service takes four points, none
right behind a document or a video (but on Claude behind a PDF or a cited document), on Nova none right behind an image
or a tool's result either, and no point of an hour behind a shorter one.

Sources: botocore 1.44.5 service model `bedrock-runtime`, shape `CachePointBlock`; "Prompt caching" page; pydantic-ai
2.68.0 `models/bedrock` with its live probes; the error "There is nothing available to cache" in the recorded answers of
@ai-sdk/amazon-bedrock 4.0.186; for Nova, pull requests 71 of aws-samples/bedrock-engineer and 1077 of
aws-samples/generative-ai-use-cases ("extraneous key [cachePoint] is not permitted"), November 2026.
"""

from providers.dialects.bedrock.converse_models import ConverseModel
from providers.json_types import JsonObject, JsonValue

MOST_POINTS = 4

_POINT = "cachePoint"
_TEXTS_ALONE = frozenset({"toolResult", "image", "audio"})
"""Blocks besides documents and videos that a point of Nova's may not stand right behind."""


def cache_point(model: ConverseModel, marker: JsonObject) -> JsonObject:
    """Return the point for a marker in Anthropic's form."""
    point: JsonObject = {"type": "default"}
    if model.hours and (ttl := marker.get("ttl")) in ("5m", "1h"):
        point["ttl"] = ttl
    return {_POINT: point}


def mark_last(blocks: list[JsonObject], point: JsonObject, claude: bool = True) -> bool:
    """Put a point behind the last block that may have one, and return whether there is any."""
    place = len(blocks)
    while place and _bars_point(blocks[place - 1], claude):
        place -= 1
    if not place or "reasoningContent" in blocks[place - 1]:
        return False
    if _POINT in blocks[place - 1]:
        blocks[place - 1] = point
    else:
        blocks.insert(place, point)
    return True


def _bars_point(block: JsonObject, claude: bool) -> bool:
    document = block.get("document")
    if isinstance(document, dict):
        return not claude or (document.get("format") != "pdf" and "citations" not in document)
    return "video" in block or (not claude and not _TEXTS_ALONE.isdisjoint(block))


def limit_points(body: JsonObject) -> bool:
    """Take surplus points out of a body, the oldest of the messages first, and return whether any had to go.

    The hour of a point behind a shorter one goes too.
    """
    tools, messages = body.get("toolConfig"), body.get("messages")
    turns = messages if isinstance(messages, list) else []
    fixed = [tools.get("tools") if isinstance(tools, dict) else None, body.get("system")]
    varying = [turn.get("content") for turn in turns if isinstance(turn, dict)]
    steady = [point for held in fixed for point in _points(held)]
    passing = [point for held in varying for point in _points(held)]
    surplus = max(0, len(steady) + len(passing) - MOST_POINTS)
    gone = {id(point) for point in [*passing, *steady][:surplus]}
    if gone:
        for held in (*fixed, *varying):
            if isinstance(held, list):
                held[:] = [each for each in held if id(each) not in gone]
    return _order_hours([point for point in (*steady, *passing) if id(point) not in gone]) or surplus > 0


def _points(held: JsonValue) -> list[JsonObject]:
    return [each for each in held if isinstance(each, dict) and _POINT in each] if isinstance(held, list) else []


def _order_hours(points: list[JsonObject]) -> bool:
    """Shorten the points that may not last an hour, and return whether there are any."""
    short = changed = False
    for holder in points:
        point = holder[_POINT]
        if isinstance(point, dict) and point.get("ttl") == "1h":
            if short:
                del point["ttl"]
                changed = True
        else:
            short = True
    return changed
