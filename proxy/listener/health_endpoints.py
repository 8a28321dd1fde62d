"""The health paths, which both listeners serve without a key: the gateway's own paths, and the paths of probes for
LiteLLM (its documentation, "Health Checks", November 2026)."""

from aiohttp import web

from proxy.listener.buffered_response import BASE_HEADERS, JSON

LIVE_PATHS = frozenset({"/health/live", "/health/liveliness", "/health/liveness"})
HEALTH_PATHS = LIVE_PATHS | {"/health", "/health/ready", "/health/readiness"}


def health_response(path: str, ready: bool) -> web.Response:
    """Return 200 if the process is ready or the path is a liveness path, else 503."""
    if ready or path in LIVE_PATHS:
        status, body = 200, b'{"status":"ok"}'
    else:
        status, body = 503, b'{"status":"unavailable"}'
    return web.Response(status=status, body=body, headers={**BASE_HEADERS, "Content-Type": JSON})
