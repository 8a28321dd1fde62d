"""The bench of the operator's page: its configuration, and its figures."""

import asyncio
from pathlib import Path

from config.load_config import load_text
from proxy.routing.snapshot import build_snapshot
from tests.bench.page import SIZES, TOKEN, Waits, answered, loads, page_request, table, watched
from tests.proxy.admin.operators import up


def test_the_table_has_as_many_deployments_as_are_told_and_routes_over_them() -> None:
    made = build_snapshot(load_text(table(SIZES[0], 8080, 9091), "t.yaml", {}))
    assert sum(1 for _ in made.targets()) == SIZES[0] + 1
    assert {len(route.members) for route in made.routes.values()} == {10}


def test_a_figure_names_the_usual_and_the_longest_wait_and_what_was_refused() -> None:
    waits = Waits([0.001] * 98 + [0.002, 0.02], refused=1)
    assert waits.line("alone") == "alone: light request p50 1.0, p99 20.0, longest 20.0 ms of 100, 1 refused"


async def test_pages_are_loaded_while_light_requests_are_watched(tmp_path: Path) -> None:
    text = table(100, 0, 0)
    async with up(text, tmp_path) as made:
        port, admin = (int(url.rpartition(":")[2]) for url in (made.app.url, made.app.admin_url))
        waits = await watched(port, lambda: loads(admin, 2))
        assert waits.refused == 0
        reader, writer = await asyncio.open_connection("127.0.0.1", admin)
        writer.write(page_request("wrong"))
        assert (await answered(reader))[0].startswith(b"HTTP/1.1 401 ")
        writer.transport.abort()
    assert TOKEN in text
