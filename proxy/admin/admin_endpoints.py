"""The operator's endpoints: page, health, metrics, status, limits, usage, reload. They are served on their own port."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import orjson
from aiohttp import web
from pydantic import SecretStr

from proxy.admin.admin_token import CHALLENGE_LINES, AdminToken
from proxy.admin.page import render
from proxy.admin.page_assets import PAGE_HEADERS
from proxy.admin.page_model import PageQuery, status_page
from proxy.admin.reload_history import ReloadableConfig
from proxy.admin.status import StatusSource
from proxy.admin.status_json import status_json
from proxy.errors import ErrorFacts
from proxy.listener.buffered_response import BASE_HEADERS, JSON, BufferedResponse
from proxy.listener.health_endpoints import HEALTH_PATHS, health_response
from proxy.listener.http_connection import path_of
from proxy.telemetry.metrics import Metrics

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Admin:
    """The handler of the operator's requests. If a token is set, every path except the health paths requires it."""

    def __init__(self, status: StatusSource, table: ReloadableConfig, token: SecretStr | None) -> None:
        self._source = status
        self._table = table
        self._token = AdminToken(token)
        self._rendering = asyncio.Lock()
        self._renderings: dict[PageQuery, asyncio.Future[bytes | None]] = {}
        self._routes: dict[str, dict[str, Handler]] = {
            "/": {"GET": self._page},
            "/metrics": {"GET": self._scrape},
            "/status": {"GET": self._status},
            "/limits": {"GET": self._limits},
            "/usage": {"GET": self._usage},
            "/-/reload": {"POST": self._reload},
            **{path: {"GET": self._health} for path in HEALTH_PATHS},
        }

    def permits(self, http: web.BaseRequest) -> bool:
        """Return whether a request carries the token; true if no token is set."""
        return self._token.permits(http.headers.get("Authorization", ""))

    async def handle(self, http: web.BaseRequest) -> web.StreamResponse:
        """Respond to one request."""
        path, method = path_of(http), http.method
        if path not in HEALTH_PATHS and not self.permits(http):
            return _wrong_token()
        methods = self._routes.get(path)
        if methods is None:
            return json_response({"error": f"Unknown path '{path}'."}, 404)
        handler = methods.get("GET" if method == "HEAD" else method)
        if handler is not None:
            return await handler(http)
        response = json_response({"error": f"Method {method} is not allowed here."}, 405)
        response.headers["Allow"] = ", ".join(methods)
        return response

    async def _health(self, request: web.BaseRequest) -> web.StreamResponse:
        return health_response(path_of(request), self._source.ready)

    async def _scrape(self, request: web.BaseRequest) -> web.StreamResponse:
        fresh = "no-cache" in request.headers.get("Cache-Control", "")
        exposition = self._source.exposition
        text = await (exposition.fresh() if fresh else exposition.recent())
        return web.Response(body=text, headers={**BASE_HEADERS, "Content-Type": Metrics.content_type})

    async def _reload(self, request: web.BaseRequest) -> web.StreamResponse:
        result = await self._table.reload()
        if result.problems:
            problems = [str(problem) for problem in result.problems]
            return json_response({"result": "refused", "digest": result.digest, "problems": problems}, 400)
        restart = {"needs_restart": list(result.needs_restart)} if result.needs_restart else {}
        return json_response({"result": "reloaded", "digest": result.digest, **restart}, 200)

    async def _limits(self, request: web.BaseRequest) -> web.StreamResponse:
        return json_response(await self._source.limits(request.query.get("team")), 200)

    async def _usage(self, request: web.BaseRequest) -> web.StreamResponse:
        usage = await self._source.usage(request.query_string)
        if usage.message:
            return json_response({"error": usage.message}, usage.status)
        return web.Response(body=usage.body, status=usage.status, headers={**BASE_HEADERS, "Content-Type": JSON})

    async def _status(self, request: web.BaseRequest) -> web.StreamResponse:
        if "text/html" in request.headers.get("Accept", ""):
            return await self._page(request)
        view, table = await self._source.view(), self._table
        facts = await asyncio.to_thread(status_json, view, table.history.newest, table.warnings)
        return json_response(facts, 200)

    async def _page(self, request: web.BaseRequest) -> web.StreamResponse:
        html = await self._shared_page(PageQuery.of(request.query))
        return web.Response(body=html, headers=PAGE_HEADERS)

    async def _shared_page(self, query: PageQuery) -> bytes:
        """Return the page for a query. Clients that request the same page while another one is rendered share one
        rendering."""
        html = None
        while html is None:
            wanted = self._renderings.get(query)
            html = await (self._rendered_page(query) if wanted is None else asyncio.shield(wanted))
        return html

    async def _rendered_page(self, query: PageQuery) -> bytes:
        """Render a page from the state at the time when rendering begins. Only one page is rendered at a time, in a
        thread, because a configuration may have thousands of deployments."""
        wanted = self._renderings[query] = asyncio.get_running_loop().create_future()
        html = None
        try:
            try:
                await self._rendering.acquire()
            finally:
                del self._renderings[query]
            try:
                view, table = await self._source.view(), self._table
                reloads, warnings = table.history.newest, table.warnings
                html = await asyncio.to_thread(lambda: render(status_page(view, reloads, warnings, query)).encode())
            finally:
                self._rendering.release()
            return html
        finally:
            # `None` means that rendering failed: one of the waiting clients then renders the page.
            wanted.set_result(html)


def error_body(path: str, facts: ErrorFacts) -> tuple[int, bytes]:
    """Return the status and the body for a request that is refused before it is parsed."""
    return facts.status, orjson.dumps({"error": facts.message})


def _wrong_token() -> BufferedResponse:
    """Refuse a request and close its connection. The listener accepts only a few new connections at a time, so a flood
    of wrong tokens also comes only a few at a time, however many connections it opened before."""
    refused = BufferedResponse(401, _WRONG_TOKEN, CHALLENGE_LINES)
    refused.force_close()
    return refused


_WRONG_TOKEN: Final = orjson.dumps({"error": "The admin token is missing or wrong."})


def json_response(value: dict[str, object], status: int) -> web.Response:
    """Return a JSON response."""
    return web.Response(body=orjson.dumps(value), status=status, headers={**BASE_HEADERS, "Content-Type": JSON})
