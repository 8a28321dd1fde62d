"""The plugins of the current configuration, and of a worker process."""

from pathlib import Path

import pytest

from proxy.cli.main import main
from tests.proxy.kit.whole_gateway import MOCK, up
from tests.proxy.plugins.kit import plugin

pytestmark = pytest.mark.smoke


async def test_a_table_without_plugins_has_no_guards_and_leaving_closes_those_that_are_there(tmp_path: Path) -> None:
    async with up(MOCK, tmp_path) as app:
        before = app.front.plugins.guards
        assert (before, app.front.gateway.hooks["anonymous", "openai"]) == (None, ())
        (tmp_path / "t.yaml").write_text(f"{MOCK}plugins: {{g: {plugin('Hider')}}}\n", encoding="utf-8")
        await app.reloader.reload()
        registry = app.front.plugins.guards
        assert registry is not None
        assert len(app.front.gateway.hooks["anonymous", "openai"]) == 1
        made = registry.running["g"].plugin.made
    assert made.closed == 1


def test_check_and_explain_tell_what_a_request_would_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, body = tmp_path / "t.yaml", tmp_path / "b.json"
    table.write_text(f"{MOCK}plugins: {{s: {plugin('Collector')}, g: {plugin('Hider')}}}\n", encoding="utf-8")
    body.write_text('{"model": "mock/echo", "prompt": "a"}', encoding="utf-8")
    assert main(["check", "-c", str(table)]) == 0
    assert "2 plugins" in capsys.readouterr().out
    assert main(["explain", str(body), "-c", str(table)]) == 0
    words = "It would pass these plugins, which are not called here: g (request guard, answer guard), s (usage sink)."
    assert words in capsys.readouterr().out
