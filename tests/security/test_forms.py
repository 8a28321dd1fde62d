"""Forms that an engine would read differently from the gateway: no model, address or text is forwarded that was not
judged."""

import pytest

from tests.proxy.gateway.test_pass_on_task import form
from tests.proxy.kit.gateway_rig import Rig, rig
from tests.security.form_corpus import NASTY, SentForm
from tests.security.form_readers import read_by_aiohttp
from tests.support.http_scripts import json_answer

pytestmark = pytest.mark.smoke

PATH = "/v1/audio/transcriptions"
SECRET = b"v/two"
INNER = form(("model", SECRET), ("file", b"RIFF"), boundary="BB")
OUTER = form(("model", b"v/m"), ("file", b"x\r\n" + INNER), boundary="AA")


async def sent_form(gateway: Rig, body: bytes, content_type: str) -> SentForm | None:
    """Return the form that the vendor gets. Return `None` if the gateway refuses it with 400."""
    gateway.vendor.default = json_answer(200, {"text": ""})
    before = len(gateway.vendor.requests)
    answer = await gateway.post(PATH, body, {"Content-Type": content_type})
    if answer.status == 400:
        assert len(gateway.vendor.requests) == before
        return None
    assert answer.status == 200
    sent = gateway.vendor.requests[-1]
    return SentForm(sent.header("content-type") or "", sent.body)


async def test_threat_14_no_head_hides_a_field_from_the_gateway() -> None:
    async with rig() as gateway:
        for head in NASTY:
            body = form(("model", b"v/m"), ("file", b"RIFF"), boundary="BB")
            body = b"--BB\r\n%b\r\n\r\n%b\r\n%b" % (head, SECRET, body)
            sent = await sent_form(gateway, body, "multipart/form-data; boundary=BB")
            if sent is not None:
                parts = await read_by_aiohttp(sent)
                assert [part.content for part in parts if part.name == "model"] == [b"m"], head


@pytest.mark.parametrize(
    "parameters",
    [
        "xboundary=AA; boundary=BB",
        "boundary =BB; xboundary=AA",
        'x="; boundary=AA"; boundary=BB',
        "boundary=AA; boundary=BB",
        "Boundary=AA; boundary=BB",
        "boundary*=utf-8''BB; boundary=AA",
        'boundary="BB ;boundary=AA "',
    ],
)
async def test_threat_12_no_second_boundary_names_another_model(parameters: str) -> None:
    async with rig() as gateway:
        assert await sent_form(gateway, OUTER, f"multipart/form-data; {parameters}") is None


async def test_threat_12_a_form_within_a_file_stays_a_file() -> None:
    async with rig() as gateway:
        sent = await sent_form(gateway, OUTER, "multipart/form-data; boundary=AA")
        assert sent is not None
        assert [part.name for part in await read_by_aiohttp(sent)] == ["model", "file"]


@pytest.mark.parametrize("name", ["prompt", "language", "stream", "response_format"])
async def test_threat_14_a_field_that_vendors_take_once_is_one_text(name: str) -> None:
    async with rig() as gateway:
        twice = form(("model", b"v/m"), ("file", b"RIFF"), (name, b"a"), (name, b"b"), boundary="BB")
        assert await sent_form(gateway, twice, "multipart/form-data; boundary=BB") is None
        as_file = form(("model", b"v/m"), (name, b"a"), boundary="BB").replace(
            b'"%b"' % name.encode(), b'"%b"; filename="f"' % name.encode()
        )
        assert await sent_form(gateway, as_file, "multipart/form-data; boundary=BB") is None
