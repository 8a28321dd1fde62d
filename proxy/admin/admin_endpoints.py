"""The operator's endpoints: page, health, metrics, status, limits, usage, reload. Served on a port of their own."""

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
from proxy.admin.reload_history import ReloadableTable
from proxy.admin.status import StatusSource
from proxy.admin.status_json import status_json
from proxy.errors import ErrorFacts
from proxy.listener.buffered_response import BASE_HEADERS, JSON, BufferedResponse
from proxy.listener.health_endpoints import HEALTH_PATHS, health_response
from proxy.listener.http_connection import path_of
from proxy.telemetry.metrics import Metrics

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Admin:
    """The handler of the operator's requests. Where a token is set, all but the health paths require it."""

    def __init__(self, status: StatusSource, table: ReloadableTable, token: SecretStr | None) -> None:
        self._source = status
        self._table = table
        self._token = AdminToken(token)
        self._drawing = asyncio.Lock()
        self._wanted: dict[PageQuery, asyncio.Future[bytes | None]] = {}
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
        """Return whether a request shows the token, where one is set."""
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
        answer = await self._source.usage(request.query_string)
        if answer.message:
            return json_response({"error": answer.message}, answer.status)
        return web.Response(body=answer.body, status=answer.status, headers={**BASE_HEADERS, "Content-Type": JSON})

    async def _status(self, request: web.BaseRequest) -> web.StreamResponse:
        if "text/html" in request.headers.get("Accept", ""):
            return await self._page(request)
        view, table = await self._source.view(), self._table
        facts = await asyncio.to_thread(status_json, view, table.history.newest, table.warnings)
        return json_response(facts, 200)

    async def _page(self, request: web.BaseRequest) -> web.StreamResponse:
        html = await self._drawn_for_all(PageQuery.of(request.query))
        return web.Response(body=html, headers=PAGE_HEADERS)

    async def _drawn_for_all(self, query: PageQuery) -> bytes:
        """Return a page. Of those who ask for the same while another page is drawn, one draws it for all."""
        html = None
        while html is None:
            wanted = self._wanted.get(query)
            html = await (self._drawn(query) if wanted is None else asyncio.shield(wanted))
        return html

    async def _drawn(self, query: PageQuery) -> bytes:
        """Draw a page as of when it begins. One at a time, in a thread: a table may have thousands of deployments."""
        wanted = self._wanted[query] = asyncio.get_running_loop().create_future()
        html = None
        try:
            try:
                await self._drawing.acquire()
            finally:
                del self._wanted[query]
            try:
                view, table = await self._source.view(), self._table
                reloads, warnings = table.history.newest, table.warnings
                html = await asyncio.to_thread(lambda: render(status_page(view, reloads, warnings, query)).encode())
            finally:
                self._drawing.release()
            return html
        finally:
            # Without a page another one of them draws it.
            wanted.set_result(html)


def error_body(path: str, facts: ErrorFacts) -> tuple[int, bytes]:
    """Return status and body for what is refused before it is a request."""
    return facts.status, orjson.dumps({"error": facts.message})


def _wrong_token() -> BufferedResponse:
    """Refuse a request, and its connection with it: the listener takes few new ones at a time, so that a crowd of wrong
    tokens comes a few at a time too, however many connections it has opened before."""
    refused = BufferedResponse(401, _WRONG_TOKEN, CHALLENGE_LINES)
    refused.force_close()
    return refused


_WRONG_TOKEN: Final = orjson.dumps({"error": "The admin token is missing or wrong."})


def json_response(value: dict[str, object], status: int) -> web.Response:
    """Return a JSON response."""
    return web.Response(body=orjson.dumps(value), status=status, headers={**BASE_HEADERS, "Content-Type": JSON})
