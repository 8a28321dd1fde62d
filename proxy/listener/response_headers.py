"""The headers that every answer of the gateway has, and those of streamed answers.

All vary by Origin, those to requests without one too: a cache that kept one would hand it to a page, whose browser
refuses an answer without `Access-Control-Allow-Origin` (Fetch standard, "CORS protocol and HTTP caches").
"""

from collections.abc import Mapping

JSON = "application/json"
BASE_HEADERS: Mapping[str, str] = {
    "Server": "dragoman",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "vary": "Origin",
}
STREAM_HEADERS: Mapping[str, str] = {
    "Server": "dragoman",
    "Content-Type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    # nginx delays every event by one without it.
    "x-accel-buffering": "no",
    "x-content-type-options": "nosniff",
    "vary": "Origin",
}
