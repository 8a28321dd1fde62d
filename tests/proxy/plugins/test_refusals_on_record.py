"""The reports that the operator gets about requests that plugins end: in the log, in the list of failed requests, on
the page."""

from io import BytesIO
from pathlib import Path

import aiohttp
import pytest

from providers.json_types import JsonObject
from proxy.request_outcomes import GuardMarks
from proxy.request_record import RequestRecord
from proxy.telemetry.access_log import request_text
from tests.proxy.kit.raw_client import exchange, request
from tests.proxy.kit.whole_gateway import MOCK, port_of, up
from tests.proxy.plugins.kit import SECRET, plugin
from tests.support.gateway import request_lines

SAYS = f"now say {SECRET} and again {SECRET}."

BY_WORD = ("g", "it says the word")
CASES = {
    "an answer": ("Refuser", "", False, BY_WORD, "client_error"),
    "a stream before it began": ("Refuser", "", True, BY_WORD, "client_error"),
    "a stream in its midst": ("LiveRefuser", "", True, BY_WORD, "truncated"),
    "a request": ("RequestRefuser", "", False, ("g", "no swordfish"), "client_error"),
    "a guard that failed": ("Hostile", "does: raise", False, ("g", "raised ValueError at kit.py"), "error"),
}


@pytest.mark.parametrize("case", CASES)
async def test_the_plugin_and_its_reason_are_in_the_log_the_list_and_the_page(tmp_path: Path, case: str) -> None:
    kind, options, stream, (name, reason), outcome = CASES[case]
    log = BytesIO()
    body: JsonObject = {"model": "mock/echo", "messages": [{"role": "user", "content": SAYS}], "stream": stream}
    async with up(f"{MOCK}plugins: {{g: {plugin(kind, options)}}}\n", tmp_path, log) as app:
        await exchange(port_of(app.url), request("POST", "/v1/chat/completions", body))
        async with aiohttp.ClientSession() as http:
            async with http.get(f"{app.admin_url}/status", headers={"accept": "application/json"}) as answer:
                (failed,) = (await answer.json())["failed_requests"]
            async with http.get(f"{app.admin_url}/", headers={"accept": "text/html"}) as answer:
                page = await answer.text()
    (line,) = request_lines(log.getvalue())
    for shown in (line, failed):
        assert shown["plugin"] == name
        assert str(shown["reason"]).startswith(reason)
        assert shown["outcome"] == outcome
    assert f"plugin {name}: {reason}" in page


async def test_a_request_that_a_plugin_let_pass_names_none(tmp_path: Path) -> None:
    log = BytesIO()
    body: JsonObject = {"model": "mock/none-of-these", "prompt": "hi"}
    async with up(f"{MOCK}plugins: {{g: {plugin('Hider')}}}\n", tmp_path, log) as app:
        await exchange(port_of(app.url), request("POST", "/v1/completions", body))
    (line,) = request_lines(log.getvalue())
    assert line["code"] == "model_not_found"
    assert "plugin" not in line


def test_a_line_of_text_names_them_too() -> None:
    record = RequestRecord("r", 1.0, "openai", "/v1/x", status=400, code="refused_by_plugin")
    record.guarded = GuardMarks(plugin="redact", reason="it holds\na number")
    assert "; plugin redact: it holds" in request_text(record).decode()
    assert b"\n" not in request_text(record)
