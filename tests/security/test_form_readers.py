"""Each reader finds in the forwarded form exactly the parts that the gateway read, or the gateway refuses the form.

The readers are the readers of FastAPI, aiohttp, the standard library and Node.js, and Go's as recorded results.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from random import Random

import pytest

from proxy.errors import GatewayError
from proxy.forms.part_heads import BadHead, read_head
from tests.e2e.agents.environments import BUSBOY, NodeProcess, environment
from tests.security.form_corpus import SentForm, corpus, random_forms
from tests.security.form_readers import Part, Reader, judge, read_by_aiohttp, read_by_email, read_by_process
from tests.support.environments import LineProcess
from tests.support.looped import looped

RANDOM_FORMS = 400


async def judged_forms(forms: Iterator[SentForm]) -> tuple[list[tuple[list[Part], SentForm]], int]:
    """Return the parts and the forwarded form of each accepted form, and the number of refused ones."""
    random, taken, refused = Random(7), list[tuple[list[Part], SentForm]](), 0
    for form in forms:
        cuts = [random.randrange(len(form.body) + 1) for _ in range(random.randint(0, 5))]
        try:
            judged = await judge(form, cuts)
        except (GatewayError, BadHead):
            refused += 1
            continue
        for part in judged.parts[1:]:
            assert part.name is not None
            assert part.content.decode("utf-8", "replace") in judged.texts[part.name]
        taken.append((judged.parts, judged.sent))
    return taken, refused


@pytest.fixture(scope="module")
def process_readers() -> Iterator[dict[str, Reader]]:
    """Readers that are not part of this environment."""
    with ExitStack() as stack:
        starlette = stack.enter_context(LineProcess(environment("agents"), "tests.security.starlette_reader"))
        node = NodeProcess("driver.mjs", folder=BUSBOY)
        stack.callback(node.close)
        exchanges: dict[str, Callable[[str], str]] = {"starlette": starlette.exchange, "busboy": node.exchange}
        yield {name: partial(read_by_process, exchange) for name, exchange in exchanges.items()}


@pytest.mark.smoke
async def test_threat_14_readers_in_python_find_what_was_judged() -> None:
    for forms in (corpus(), random_forms(1, RANDOM_FORMS)):
        taken, refused = await judged_forms(forms)
        assert len(taken) > 20
        assert refused > 50
        for parts, sent in taken:
            assert await read_by_aiohttp(sent) == parts
            assert [_comparable(part) for part in read_by_email(sent)] == [_comparable(part) for part in parts]


def _comparable(part: Part) -> Part:
    """Return a part without a filename beyond ASCII, which `email` cannot represent."""
    named = part.filename is None or part.filename.isascii()
    return part if named else Part(part.name, "beyond ASCII", part.content)


@looped(
    ("head", "name", "filename"),
    [
        ('Content-Disposition: form-data; name="_charset_"', "_charset_", ""),
        ('Content-Disposition: form-data; name="a b:c/d"', "a b:c/d", ""),
        ('Content-Disposition: form-data; name="include[]"', "include[]", ""),
        ('Content-Disposition: form-data; name="x"; filename="a b%3Bc ü.wav"', "x", "a b%3Bc ü.wav"),
        ('Content-Disposition: form-data; name="x"; filename="100%.wav"', "x", "100%.wav"),
        ('Content-Disposition: form-data; name="x"; filename="?="', "x", "?="),
        ('Content-Disposition: form-data; name="x"; filename="a%22%3B name=model"', "x", "a%22%3B name=model"),
        ('Content-Disposition: form-data; name="x"; filename="a"\r\nContent-Type: audio/wav', "x", "a"),
    ],
)
def test_threat_14_what_go_finds_is_what_was_judged(head: str, name: str, filename: str) -> None:
    # FormName and FileName of mime/multipart in Go 1.26.8, run in November 2026.
    judged = read_head(head.encode())
    assert judged.written() == f"{head}\r\n\r\n".encode()
    assert (judged.name, judged.filename or "") == (name, filename)


@pytest.mark.clients
@pytest.mark.timeout(300)
@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
async def test_threat_14_readers_of_other_frameworks_find_what_was_judged(process_readers: dict[str, Reader]) -> None:
    for forms in (corpus(), random_forms(2, RANDOM_FORMS)):
        for parts, sent in (await judged_forms(forms))[0]:
            for name, read in process_readers.items():
                assert read(sent) == parts, name
