"""The whole gateway in this process, with its real listeners, before fake vendors."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path
from urllib.parse import urlsplit

from proxy.process.assemble_app import Addresses, WholeGateway, running
from proxy.process.load_table import Source
from tests.support.http_scripts import LAST_CHUNK, chunk, head
from tests.support.openai_wire import completion_frames
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Send

MOCK = "version: 1\nvendors: {mock: {}}\nmodels: {mock/echo: {}}\n"
FRAMES = completion_frames(["one", "two"])
START = Send(head(200, [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")]) + chunk(FRAMES[0]))
REST = (*(Send(chunk(frame)) for frame in FRAMES[1:]), Send(LAST_CHUNK))
ANY = Addresses("127.0.0.1", 0, "127.0.0.1", 0)


def table_before(vendor: FakeVendor) -> str:
    """Return a configuration whose one model is the fake vendor's."""
    address = f"base_url: '{vendor.base_url}/v1', allow_private: true"
    return f"version: 1\nvendors: {{v: {{profile: openai_compatible, {address}}}}}\nmodels: {{v/m: {{}}}}\n"


def port_of(url: str) -> int:
    port = urlsplit(url).port
    assert port is not None
    return port


@asynccontextmanager
async def up(
    text: str, folder: Path, log: BytesIO | None = None, listen: Addresses = ANY
) -> AsyncIterator[WholeGateway]:
    """Yield the gateway with this configuration, in this process."""
    path = folder / "t.yaml"
    path.write_text(text, encoding="utf-8")
    source = Source(path, {})
    async with running(source, source.load(), listen, log or BytesIO()) as app:
        yield app
