"""The health paths, which both listeners answer without a key."""

from aiohttp import web

from proxy.listener.response_headers import BASE_HEADERS, JSON

LIVE_PATH = "/health/live"
HEALTH_PATHS = frozenset({"/health", LIVE_PATH, "/health/ready"})


def health_response(path: str, ready: bool) -> web.Response:
    """Return 200 where the process is ready, and always for the liveness path; else 503."""
    if ready or path == LIVE_PATH:
        status, body = 200, b'{"status":"ok"}'
    else:
        status, body = 503, b'{"status":"unavailable"}'
    return web.Response(status=status, body=body, headers={**BASE_HEADERS, "Content-Type": JSON})
