"""The memory that failed responses leave behind (R41).

Each response is as large as the gateway reads at all. In a container of `CAP` bytes, a process that ever had more would
have been killed.
"""

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import uvloop

from tests.bench.cpu import PROC, resident_bytes
from tests.proxy.kit.tables import digest_of
from tests.support.gateway import running_gateway
from tests.support.http_scripts import head, json_answer
from tests.support.openai_wire import completion
from tests.support.vendor_script import Send
from tests.trust.figure_types import Result
from tests.trust.load_client import KEY, End, ask, asking
from tests.trust.load_rig import port_of

MB = 2**20
CAP = 512 * MB
"""Bytes of memory that the process may have, by the kernel's count."""

MOST_KEPT = 40 * MB
"""Bytes at rest that the process may have more afterwards than before."""

WARM = 5
"""Good responses before the first bad one."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of bad response: a body in a profile's format, which may be compressed. `cut` bytes at its end are never
    sent."""

    body: Callable[[], bytes]
    stream: bool = False
    profile: str = "openai_compatible"
    status: int = 200
    packed: bool = False
    cut: int = 0


def _text(size: int, finish: bytes = b'"stop"') -> bytes:
    start = b'{"id":"c","object":"text_completion","choices":[{"index":0,"text":"'
    return _filled(start, b"word ", b'","finish_reason":' + finish + b"}]}", size)


def _filled(start: bytes, piece: bytes, end: bytes, size: int = 31 * MB) -> bytes:
    """Return parts between a start and an end, at most `size` bytes in all."""
    return start + piece * ((size - len(start) - len(end)) // len(piece)) + end


def _members() -> bytes:
    return b'{"choices":{' + b",".join([b'"%x":""' % number for number in range(2_500_000)]) + b"}}"


KINDS: Mapping[str, Kind] = {
    "oversized": Kind(lambda: _text(48 * MB)),
    "cut": Kind(lambda: _text(31 * MB), cut=MB),
    "no JSON": Kind(lambda: _filled(b"", b"word ", b"")),
    "JSON without its end": Kind(lambda: _text(31 * MB)[:-1]),
    "a page": Kind(lambda: _filled(b"<html>", b"<p>word</p>", b"</html>")),
    "no choices": Kind(lambda: _filled(b'{"data":"', b"word ", b'"}')),
    "objects": Kind(lambda: _filled(b'{"choices":[', b"{},", b"{}]}")),
    "objects of a member": Kind(lambda: _filled(b'{"choices":[', b'{"a":1},', b"{}]}")),
    "lists": Kind(lambda: _filled(b'{"choices":[', b"[],", b"[]]}")),
    "numbers": Kind(lambda: _filled(b'{"choices":[', b"1.5,", b"1]}")),
    "names": Kind(_members),
    "choices": Kind(lambda: _filled(b'{"choices":[', b'{"text":"a","finish_reason":"stop"},', b"1]}")),
    "nested": Kind(lambda: b"[" * (31 * MB)),
    "an end that is none": Kind(lambda: _text(31 * MB, b'"cancelled"')),
    "a bomb": Kind(lambda: _text(160 * MB), packed=True),
    "an error": Kind(lambda: _text(31 * MB), status=500),
    "an error of the key": Kind(lambda: _text(31 * MB), status=401),
    "an error that is a bomb": Kind(lambda: _text(160 * MB), status=500, packed=True),
    "a stream of one event": Kind(lambda: b"data: " + _text(24 * MB) + b"\n\n", True),
    "a stream of no JSON": Kind(lambda: b"data: " + b"x" * (15 * MB) + b"\n\n", True),
    "a stream of objects": Kind(lambda: b"data: " + _filled(b'{"choices":[', b"{},", b"{}]}\n\n", 15 * MB), True),
    "a stream of lines": Kind(lambda: _filled(b"", b"data:\n", b"\n"), True),
    "a stream that is whole": Kind(lambda: _text(48 * MB), True),
    "a stream that is cut": Kind(lambda: b"data: " + _text(15 * MB)[:-1], True),
    "a stream that is a bomb": Kind(lambda: b"data: " + _text(160 * MB), True, packed=True),
    "a stream that breaks": Kind(lambda: b'data: {"choices":[{"text":"a"}]}\n\ndata: ' + b"x" * (24 * MB), True),
    "Anthropic": Kind(lambda: _filled(b'{"content":[', b"{},", b'{}],"stop_reason":7}'), profile="anthropic"),
    "Anthropic's stream": Kind(lambda: b"event: x\ndata: " + b"x" * (24 * MB), True, "anthropic"),
    "Gemini": Kind(lambda: _filled(b'{"candidates":[', b"{},", b"{}]}"), profile="gemini"),
    "Gemini's stream": Kind(lambda: _filled(b"[", b"{},", b"{}"), True, "gemini"),
    "Cohere": Kind(lambda: _filled(b'{"message":{"content":[', b"{},", b"{}]}}"), profile="cohere"),
    "Ollama's lines": Kind(lambda: b"x" * (31 * MB), True, "ollama_native"),
    "Bedrock's frames": Kind(lambda: b"\x01\x7f\x00\x00\x00\x00\x00\x00" + b"x" * (24 * MB), True, "bedrock"),
}


def answer_of(kind: Kind) -> bytes:
    """Return all bytes that a vendor sends."""
    body = kind.body()
    if kind.packed:
        packer = zlib.compressobj(1, wbits=31)
        body = packer.compress(body) + packer.flush()
    headers = [("content-length", str(len(body) + kind.cut)), ("connection", "close")]
    headers.append(("content-type", "text/event-stream" if kind.stream else "application/json"))
    if kind.packed:
        headers.append(("content-encoding", "gzip"))
    return head(kind.status, headers) + body


@dataclass(slots=True)
class Vendor:
    """A vendor that responds to every request with the same bytes."""

    answer: bytes = b""
    port: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection, with one request on it."""
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(self.answer)
            await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            pass  # the gateway has read enough
        finally:
            writer.close()


@asynccontextmanager
async def serving() -> AsyncIterator[Vendor]:
    """Run the vendor for the duration of the block."""
    vendor = Vendor()
    server = await asyncio.start_server(vendor.serve, "127.0.0.1", 0)
    vendor.port = server.sockets[0].getsockname()[1]
    async with server:
        yield vendor


def table_of(port: int, kinds: Collection[Kind], rounds: int) -> str:
    """Return a configuration with a vendor for each kind and a deployment for each response, so that no failure affects
    another one."""
    vendors = {f"v{number}": kind.profile for number, kind in enumerate(kinds)} | {"well": "openai_compatible"}
    models = [model_of(number, each) for number in range(len(kinds)) for each in range(rounds)]
    return "\n".join(
        [
            "version: 1",
            "defaults: {allow_private: true, api_key: sk-of-the-operator}",
            "vendors:",
            *(f'  {name}: {{profile: {row}, base_url: "http://127.0.0.1:{port}"}}' for name, row in vendors.items()),
            "models:",
            *(f"  {name}: {{max_output_tokens: 64}}" for name in (*models, "well/m")),
            f'teams: {{load: {{keys: ["{digest_of(KEY)}"], models: ["*"]}}}}',
        ]
    )


def model_of(number: int, each: int) -> str:
    """Return the name of the model for a kind's response number `number`."""
    return f"v{number}/m{each}"


@dataclass(frozen=True, slots=True)
class Left:
    """The traces of failed responses: bytes at rest before and after them, the most at any moment, how each kind ended
    for its client, and whether the gateway still responds."""

    answers: int
    before: int
    after: int
    most: int
    ends: Mapping[str, End]
    well: bool

    @property
    def kept(self) -> int:
        return self.after - self.before


def most_resident(pid: int) -> int:
    """Return the most bytes that a process has held so far."""
    lines = (PROC / str(pid) / "status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


async def _end(port: int, data: bytes) -> End:
    """Send a request until the gateway accepts it, and return its end. The gateway accepts none while its event loop is
    late."""
    ended = await ask(port, data)
    for _ in range(50):
        if ended.status != 503:
            break
        await asyncio.sleep(0.1)
        ended = await ask(port, data)
    return ended.end


async def failed_answers(folder: Path, kinds: Mapping[str, Kind], rounds: int) -> Left:
    """Return the traces of `rounds` responses of each kind, one after the other, in one gateway."""
    async with AsyncExitStack() as stack:
        vendor = await stack.enter_async_context(serving())
        gateway = await stack.enter_async_context(
            running_gateway(table_of(vendor.port, kinds.values(), rounds), folder)
        )
        pid, port = gateway.process.pid, port_of(gateway)
        (good,) = [step.data for step in json_answer(200, completion("hello")) if isinstance(step, Send)]
        vendor.answer = good
        for _ in range(WARM):
            await ask(port, asking("well/m"))
        before, ends = resident_bytes(pid), dict[str, End]()
        for number, (name, kind) in enumerate(kinds.items()):
            vendor.answer = await asyncio.to_thread(answer_of, kind)
            for each in range(rounds):
                ends[name] = await _end(port, asking(model_of(number, each), kind.stream))
        vendor.answer = good
        ended = await ask(port, asking("well/m"))
        well = ended.well and gateway.process.poll() is None
        after, most = (resident_bytes(pid), most_resident(pid)) if well else (0, 0)
        return Left(rounds * len(kinds), before, after, most, ends, well)


def memory_after_failures(folder: Path, kinds: Mapping[str, Kind], rounds: int) -> Result:
    """Return the figure for `rounds` responses of each kind."""
    left = uvloop.run(failed_answers(folder, kinds, rounds))
    untold = [name for name, end in left.ends.items() if end not in (End.REFUSED, End.TOLD)]
    value = (
        f"{left.kept / MB:+.0f} MB at rest after {left.answers} answers of {len(kinds)} kinds, "
        f"{left.most / MB:.0f} MB at most"
    )
    if not left.well:
        value = f"the gateway has died, or answers no more, within {left.answers} answers"
    if untold:
        value += f"; no failure to the client: {', '.join(untold)}"
    return Result(value, left.well and not untold and left.kept <= MOST_KEPT and left.most <= CAP)


def r41(folder: Path) -> Result:
    """Return the figure for two hundred responses."""
    return memory_after_failures(folder, KINDS, -(-200 // len(KINDS)))
