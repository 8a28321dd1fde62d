"""The interface of plugins: its parts, and the example of its README."""

import re
import sys
import types
from pathlib import Path

import pytest

from providers.json_types import JsonObject
from proxy.plugins import api
from tests.proxy.kit.raw_client import exchange, request
from tests.proxy.kit.whole_gateway import MOCK, port_of, up

pytestmark = pytest.mark.smoke


README = Path(api.__file__).with_name("README.md")


async def test_the_example_of_the_readme_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = re.search(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    assert found is not None
    module = types.ModuleType("acme_guards")
    exec(found[1], module.__dict__)  # noqa: S102 - the repository's own example
    monkeypatch.setitem(sys.modules, "acme_guards", module)
    table = f"{MOCK}plugins: {{mine: {{use: 'acme_guards:NoProjectNames', options: {{names: [bluebird]}}}}}}\n"
    async with up(table, tmp_path) as app:
        bodies: dict[str, JsonObject] = {
            role: {"model": "mock/echo", "messages": [{"role": role, "content": "a bluebird"}]}
            for role in ("user", "assistant")
        }
        answers = {
            role: await exchange(port_of(app.url), request("POST", "/v1/chat/completions", body))
            for role, body in bodies.items()
        }
    assert (answers["user"].status, answers["user"].code) == (400, "refused_by_plugin")
    assert answers["user"].message == "Refused by the plugin 'mine': anonymous may not ask about projects"
    assert b"a bluebird" not in answers["assistant"].body


def test_exceptions_carry_what_the_gateway_tells() -> None:
    refused = api.RefusedStream("why", "content_filter")
    assert (refused.reason, refused.code) == ("why", "content_filter")
    assert api.OptionError("what", "a", 1).path == ("a", 1)
