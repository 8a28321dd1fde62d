"""Puts cache points into a request to Bedrock's Converse, made from the cache markers of the request's parts.

A cache marker does not change the response, so a marker that cannot become a point is left out. The service accepts at
most four points in a request. It refuses a point right after a document or a video, except that Claude accepts a point
after a PDF or a cited document. On Nova it also refuses a point right after an image or a tool result. It refuses a
one-hour point after a shorter one.

Sources: botocore 1.44.5 service model `bedrock-runtime`, shape `CachePointBlock`; "Prompt caching" page; pydantic-ai
2.68.0 `models/bedrock` with its live probes; the error "There is nothing available to cache" in the recorded answers of
@ai-sdk/amazon-bedrock 4.0.186; for Nova, pull requests 71 of aws-samples/bedrock-engineer and 1077 of
aws-samples/generative-ai-use-cases ("extraneous key [cachePoint] is not permitted"), November 2026.
"""

from providers.dialects.bedrock.converse_models import ConverseModel
from providers.json_types import JsonObject, JsonValue

MAX_CACHE_POINTS = 4

_POINT = "cachePoint"
_NO_POINT_ON_NOVA = frozenset({"toolResult", "image", "audio"})
"""The kinds of blocks, in addition to documents and videos, that Nova refuses right before a cache point."""


def cache_point(model: ConverseModel, marker: JsonObject) -> JsonObject:
    """Return the cache point for a marker in Anthropic's form."""
    point: JsonObject = {"type": "default"}
    if model.hours and (ttl := marker.get("ttl")) in ("5m", "1h"):
        point["ttl"] = ttl
    return {_POINT: point}


def mark_last(blocks: list[JsonObject], point: JsonObject, claude: bool = True) -> bool:
    """Put a cache point after the last block that accepts one. Return whether there is such a block."""
    end = len(blocks)
    while end and _bars_point(blocks[end - 1], claude):
        end -= 1
    if not end or "reasoningContent" in blocks[end - 1]:
        return False
    if _POINT in blocks[end - 1]:
        blocks[end - 1] = point
    else:
        blocks.insert(end, point)
    return True


def _bars_point(block: JsonObject, claude: bool) -> bool:
    document = block.get("document")
    if isinstance(document, dict):
        return not claude or (document.get("format") != "pdf" and "citations" not in document)
    return "video" in block or (not claude and not _NO_POINT_ON_NOVA.isdisjoint(block))


def limit_points(body: JsonObject) -> bool:
    """Remove surplus cache points from a body, the oldest of the messages first. Return whether any was removed or
    shortened.

    One-hour points after a shorter point are shortened.
    """
    tools, messages = body.get("toolConfig"), body.get("messages")
    turns = messages if isinstance(messages, list) else []
    prefix = [tools.get("tools") if isinstance(tools, dict) else None, body.get("system")]
    contents = [turn.get("content") for turn in turns if isinstance(turn, dict)]
    of_prefix = [point for content in prefix for point in _points(content)]
    of_messages = [point for content in contents for point in _points(content)]
    surplus = max(0, len(of_prefix) + len(of_messages) - MAX_CACHE_POINTS)
    removed = {id(point) for point in [*of_messages, *of_prefix][:surplus]}
    if removed:
        for content in (*prefix, *contents):
            if isinstance(content, list):
                content[:] = [each for each in content if id(each) not in removed]
    return (
        _shorten_late_hours([point for point in (*of_prefix, *of_messages) if id(point) not in removed]) or surplus > 0
    )


def _points(content: JsonValue) -> list[JsonObject]:
    return [each for each in content if isinstance(each, dict) and _POINT in each] if isinstance(content, list) else []


def _shorten_late_hours(points: list[JsonObject]) -> bool:
    """Shorten the one-hour points that follow a shorter point. Return whether there are any."""
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
