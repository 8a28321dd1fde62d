"""A gateway with an operator who sends requests to its admin listener, over real sockets."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from proxy.process.assemble_app import Addresses, WholeGateway, running
from proxy.process.load_table import Source
from tests.proxy.kit.raw_client import Answer, exchange, request
from tests.proxy.kit.tables import digest_of
from tests.proxy.kit.whole_gateway import port_of

TOKEN = "admin-token-canary"
TABLE = f"""version: 1
vendors: {{mock: {{}}}}
models: {{mock/echo: {{}}, mock/*: {{}}}}
routes: {{fast: mock/echo}}
teams: {{search: {{keys: ["{digest_of("k")}"], models: ["*"]}}}}
"""
WITH_TOKEN = TABLE + f"server: {{admin: {{token: {TOKEN}}}}}\n"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@dataclass(frozen=True, slots=True)
class Operator:
    """A client of the admin listener of a gateway whose config file is `path`."""

    app: WholeGateway
    path: Path

    async def ask(self, method: str, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        return await exchange(port_of(self.app.admin_url), request(method, path, None, headers))


@asynccontextmanager
async def up(text: str, folder: Path) -> AsyncIterator[Operator]:
    path = folder / "t.yaml"
    path.write_text(text, encoding="utf-8")
    source = Source(path, {})
    async with running(source, source.load(), Addresses("127.0.0.1", 0, "127.0.0.1", 0), BytesIO()) as app:
        yield Operator(app, path)


def said(answer: Answer) -> dict[str, Any]:  # Any: our own JSON
    found: dict[str, Any] = json.loads(answer.body)
    return found
