"""The operator's endpoints: health, metrics, status, limits, usage, reload. Served on a port of their own."""

import hmac
from collections.abc import Awaitable, Callable
from html import escape

import orjson
from aiohttp import web
from pydantic import SecretStr

from providers.vendor_credential import Credential
from proxy.admin.reload_history import ReloadResult
from proxy.admin.status import StatusSource
from proxy.errors import ErrorFacts
from proxy.listener.health_endpoints import HEALTH_PATHS, health_response
from proxy.listener.http_connection import path_of
from proxy.listener.response_headers import BASE_HEADERS, JSON
from proxy.telemetry.metrics import Metrics

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
Reload = Callable[[], Awaitable[ReloadResult]]


class Admin:
    """The handler of the operator's requests. Where a token is set, all but the health paths require it as Bearer.
    `reload` loads the table again."""

    def __init__(
        self, status: StatusSource, reload: Callable[[], Awaitable[ReloadResult]], token: SecretStr | None
    ) -> None:
        self._source = status
        self._reload_table = reload
        self._expected = None if token is None else Credential("bearer", key=token).headers()["Authorization"].encode()
        self._routes: dict[str, dict[str, Handler]] = {
            "/metrics": {"GET": self._scrape},
            "/status": {"GET": self._status},
            "/limits": {"GET": self._limits},
            "/usage": {"GET": self._usage},
            "/-/reload": {"POST": self._reload},
            **{path: {"GET": self._health} for path in HEALTH_PATHS},
        }

    async def handle(self, http: web.BaseRequest) -> web.StreamResponse:
        """Respond to one request."""
        path, method = path_of(http), http.method
        if path not in HEALTH_PATHS and not self._permitted(http):
            return json_response({"error": "The admin token is missing or wrong."}, 401)
        methods = self._routes.get(path)
        if methods is None:
            return json_response({"error": f"Unknown path '{path}'."}, 404)
        handler = methods.get("GET" if method == "HEAD" else method)
        if handler is not None:
            return await handler(http)
        response = json_response({"error": f"Method {method} is not allowed here."}, 405)
        response.headers["Allow"] = ", ".join(methods)
        return response

    def _permitted(self, request: web.BaseRequest) -> bool:
        if self._expected is None:
            return True
        presented = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        return hmac.compare_digest(presented, self._expected)

    async def _health(self, request: web.BaseRequest) -> web.StreamResponse:
        return health_response(path_of(request), self._source.ready)

    async def _scrape(self, request: web.BaseRequest) -> web.StreamResponse:
        fresh = "no-cache" in request.headers.get("Cache-Control", "")
        exposition = self._source.exposition
        text = await (exposition.fresh() if fresh else exposition.recent())
        return web.Response(body=text, headers={**BASE_HEADERS, "Content-Type": Metrics.content_type})

    async def _reload(self, request: web.BaseRequest) -> web.StreamResponse:
        result = await self._reload_table()
        if result.problems:
            problems = [str(problem) for problem in result.problems]
            return json_response({"result": "refused", "digest": result.digest, "problems": problems}, 400)
        return json_response({"result": "reloaded", "digest": result.digest}, 200)

    async def _limits(self, request: web.BaseRequest) -> web.StreamResponse:
        return json_response(await self._source.limits(request.query.get("team")), 200)

    async def _usage(self, request: web.BaseRequest) -> web.StreamResponse:
        answer = await self._source.usage(request.query_string)
        if answer.message:
            return json_response({"error": answer.message}, answer.status)
        return web.Response(body=answer.body, status=answer.status, headers={**BASE_HEADERS, "Content-Type": JSON})

    async def _status(self, request: web.BaseRequest) -> web.StreamResponse:
        facts = await self._source.facts()
        if "text/html" not in request.headers.get("Accept", ""):
            return json_response(facts, 200)
        page = _page(facts)
        return web.Response(body=page.encode(), headers={**BASE_HEADERS, "Content-Type": "text/html; charset=utf-8"})


def error_body(path: str, facts: ErrorFacts) -> tuple[int, bytes]:
    """Return status and body for what is refused before it is a request."""
    return facts.status, orjson.dumps({"error": facts.message})


def json_response(value: dict[str, object], status: int) -> web.Response:
    """Return a JSON response."""
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
