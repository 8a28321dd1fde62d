"""The operator's listener: health, metrics, status, reload.

Never serves a completion, and never shares the public port.
"""

import hmac
from collections.abc import Awaitable, Callable
from html import escape

import orjson
from aiohttp import web
from pydantic import SecretStr

from providers.auth import Credential
from proxy.errors import ErrorFacts
from proxy.metrics import Metrics
from proxy.operated import Operated
from proxy.reload import Reloader
from proxy.server import BASE_HEADERS, HEALTH_PATHS, JSON, health, path_of

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Admin:
    """The admin listener's handler. With a token, everything but health asks for it as a Bearer key."""

    def __init__(self, operated: Operated, reloader: Reloader, token: SecretStr | None) -> None:
        self._operated = operated
        self._reloader = reloader
        self._expected = None if token is None else Credential("bearer", key=token).headers()["Authorization"].encode()
        self._routes: dict[str, dict[str, Handler]] = {
            "/metrics": {"GET": self._scrape},
            "/status": {"GET": self._status},
            "/-/reload": {"POST": self._reload},
            **{path: {"GET": self._health} for path in HEALTH_PATHS},
        }

    async def handle(self, http: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        path, method = path_of(http), http.method
        if path not in HEALTH_PATHS and not self._permitted(http):
            return answer({"error": "The admin token is missing or wrong."}, 401)
        methods = self._routes.get(path)
        if methods is None:
            return answer({"error": f"Unknown path '{path}'."}, 404)
        handler = methods.get("GET" if method == "HEAD" else method)
        if handler is not None:
            return await handler(http)
        response = answer({"error": f"Method {method} is not allowed here."}, 405)
        response.headers["Allow"] = ", ".join(methods)
        return response

    def _permitted(self, request: web.BaseRequest) -> bool:
        if self._expected is None:
            return True
        given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        return hmac.compare_digest(given, self._expected)

    async def _health(self, request: web.BaseRequest) -> web.StreamResponse:
        return health(self._operated.ready or path_of(request) == "/health/live", BASE_HEADERS)

    async def _scrape(self, request: web.BaseRequest) -> web.StreamResponse:
        fresh = "no-cache" in request.headers.get("Cache-Control", "")
        text = await (self._operated.render() if fresh else self._operated.scrape())
        return web.Response(body=text, headers={**BASE_HEADERS, "Content-Type": Metrics.content_type})

    async def _reload(self, request: web.BaseRequest) -> web.StreamResponse:
        result = await self._reloader.reload()
        if result.problems:
            problems = [str(problem) for problem in result.problems]
            return answer({"result": "refused", "digest": result.digest, "problems": problems}, 400)
        return answer({"result": "reloaded", "digest": result.digest}, 200)

    async def _status(self, request: web.BaseRequest) -> web.StreamResponse:
        facts = await self._operated.facts()
        if "text/html" not in request.headers.get("Accept", ""):
            return answer(facts, 200)
        page = _page(facts)
        return web.Response(body=page.encode(), headers={**BASE_HEADERS, "Content-Type": "text/html; charset=utf-8"})


def envelope(path: str, facts: ErrorFacts) -> tuple[int, bytes]:
    """What is refused before it is a request, in the admin listener's form."""
    return facts.status, orjson.dumps({"error": facts.message})


def answer(value: dict[str, object], status: int) -> web.Response:
    """A JSON answer of the admin listener."""
    return web.Response(body=orjson.dumps(value), status=status, headers={**BASE_HEADERS, "Content-Type": JSON})


def _page(facts: dict[str, object]) -> str:
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{_cell(value)}</td></tr>" for name, value in facts.items())
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><title>Dragoman</title>"
        "<style>body{font:16px system-ui;margin:2rem}th{text-align:left;vertical-align:top;padding-right:2rem}</style>"
        f"<h1>Dragoman</h1><table>{rows}</table></html>"
    )


def _cell(value: object) -> str:
    if isinstance(value, list):
        return "<br>".join(escape(str(item)) for item in value) or "none"
    return escape(str(value))
