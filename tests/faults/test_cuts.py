"""A thousand responses cut at a random byte: the client gets the complete response, or sees that it is incomplete."""

import asyncio
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Final

import orjson
import pytest

from tests.faults.check_answers import broken, choices, frames, refusal
from tests.faults.fault_rig import TABLE, Rig, rig
from tests.faults.test_faults import LOOPS
from tests.proxy.kit.raw_client import Answer
from tests.support.http_scripts import LAST_CHUNK, Headers, chunk, cut, head
from tests.support.openai_wire import completion, completion_frames
from tests.support.vendor_script import Fin, Rst, Script, Send

CUTS: Final = 1000
AT_ONCE: Final = 8
LONGEST: Final = 150.0
"""Seconds for all of them."""

MODELS: Final = [f"m{number}" for number in range(AT_ONCE)]
_LINES: Final = "".join(f"  one/{model}: {{}}\n" for model in MODELS)
_PATIENT: Final = re.sub(r"timeouts: {.*}", "timeouts: {connect: 5m, first_event: 5m, idle: 5m, total: 10m}", TABLE)
MANY: Final = _PATIENT.replace("models:\n", f"models:\n{_LINES}", 1).replace('"one/m"', '"one/*"')
"""Each concurrent request uses a model of its own, so that a vendor's failures affect no other request. The limits are
too high for a busy machine to reach."""

TEXTS: Final = ("one ", "t\u00e9n \U0001f600 ", 'quotes " and \\ ', "\n\n", "data: [DONE]", " end")
FULL: Final = "".join(TEXTS)
JSON: Final = orjson.dumps(completion(FULL, "m"))
PIECES: Final = [JSON[at : at + 50] for at in range(0, len(JSON), 50)]
FRAMES: Final = completion_frames(TEXTS)


@dataclass(frozen=True, slots=True)
class Framing:
    """A way to send a non-streaming response, or a stream: its head, and the parts of its body that may be cut."""

    name: str
    stream: bool
    head: Headers
    body: list[bytes]

    def script(self) -> Script:
        """Return a script of all of it, then the end of the connection."""
        kind = "text/event-stream" if self.stream else "application/json"
        start = head(200, [("content-type", kind), *self.head])
        return (Send(start), *(Send(piece) for piece in self.body), Fin())


def _chunks(pieces: list[bytes]) -> list[bytes]:
    return [*map(chunk, pieces), LAST_CHUNK]


ENDINGS: Final[tuple[Fin | Rst, ...]] = (Fin(), Rst())
CLOSE: Final = [("connection", "close")]
CHUNKED: Final = [("transfer-encoding", "chunked")]
FRAMINGS: Final = (
    Framing("content-length", False, [("content-length", str(len(JSON)))], PIECES),
    Framing("chunked", False, CHUNKED, _chunks(PIECES)),
    Framing("close-delimited", False, CLOSE, PIECES),
    Framing("SSE content-length", True, [("content-length", str(sum(map(len, FRAMES))))], FRAMES),
    Framing("SSE chunked", True, CHUNKED, _chunks(FRAMES)),
    Framing("SSE close-delimited", True, CLOSE, FRAMES),
)


@dataclass(frozen=True, slots=True)
class Cut:
    """A response of which `size` bytes are sent, then the end."""

    framing: Framing
    ending: Fin | Rst
    size: int


def drawn(seed: int) -> Iterator[Cut]:
    """Yield cuts of every framing, alternately by FIN and RST: before, within and behind the head and each part of the
    body."""
    draw = random.Random(seed)
    ways = list(product(FRAMINGS, ENDINGS))
    for number in range(CUTS):
        framing, ending = ways[number % len(ways)]
        sizes = [len(step.data) for step in framing.script() if isinstance(step, Send)]
        step = draw.randrange(len(sizes))
        within = draw.choice((0, draw.randint(1, sizes[step] - 1), sizes[step]))
        yield Cut(framing, ending, sum(sizes[:step]) + within)


def end_of(answer: Answer, stream: bool) -> str:
    """Return `all` for a complete response, `error` for an error before any content, or `broken` for a stream that
    breaks off. Fail for anything else."""
    if answer.status != 200:
        status, code = refusal(answer)
        assert (status, code) in ((502, "upstream_error"), (502, "malformed_upstream"))
        return "error"
    found = choices(frames(answer) if stream else [answer.json()])
    text = "".join(str(choice["text"]) for choice in found)
    if not answer.whole:
        assert broken(answer) in ("upstream_error", "malformed_upstream")
        assert FULL.startswith(text)
        return "broken"
    assert text == FULL
    assert [choice["finish_reason"] for choice in found if choice["finish_reason"]] == ["stop"]
    assert not stream or answer.events()[-1] == b"[DONE]"
    return "all"


async def asked(made: Rig, model: str, cuts: Iterator[Cut], ends: Counter[tuple[str, str]]) -> None:
    """Send requests for cuts, one after the other, with a model of their own."""
    for each in cuts:
        made.forget()
        made.one.answer_model(model, cut(each.framing.script(), each.size, each.ending))
        answer = await made.ask(f"one/{model}", stream=each.framing.stream)
        ends[each.framing.name, end_of(answer, each.framing.stream)] += 1


async def counted(folder: Path, seed: int) -> Counter[tuple[str, str]]:
    """Return how the responses ended, by framing."""
    ends: Counter[tuple[str, str]] = Counter()
    async with rig(folder, table=MANY) as made:
        before = await made.ledger()
        uncut = [await _uncut(made, framing) for framing in FRAMINGS]
        assert uncut == ["all"] * len(FRAMINGS)
        cuts = drawn(seed)
        async with asyncio.timeout(LONGEST), asyncio.TaskGroup() as askers:
            for model in MODELS:
                askers.create_task(asked(made, model, cuts, ends))
        after = await made.settled(before)
        assert after.settled, after
        outcomes = Counter(str(line["outcome"]) for line in await made.logged())
    assert outcomes["truncated"] == sum(count for (_, end), count in ends.items() if end == "broken")
    assert outcomes["ok"] == sum(count for (_, end), count in ends.items() if end == "all") + len(FRAMINGS)
    return ends


async def _uncut(made: Rig, framing: Framing) -> str:
    made.one.answer(framing.script())
    return end_of(await made.ask("one/m", stream=framing.stream), framing.stream)


@pytest.mark.parametrize(("loop", "seed"), [*zip(LOOPS, (1, 2), strict=True)])
def test_no_cut_is_silent(loop: str, seed: int, tmp_path: Path) -> None:
    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        ends = runner.run(counted(tmp_path, seed))
    assert ends.total() == CUTS
    for framing in FRAMINGS:
        assert ends[framing.name, "error"] > 0
        assert (ends[framing.name, "broken"] > 0) is framing.stream
        assert ends[framing.name, "all"] > 0
