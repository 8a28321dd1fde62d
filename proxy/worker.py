"""One of several processes that serve on one port: begun and told by a supervisor, never seen by an operator.

It loads the table from copies that the supervisor hands over, so that all have the same one, whatever becomes of the
files. Never a listener for operators.
"""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from config.files import Copies
from proxy.app import Serving, Shown, background, listening, prepare, serving, settle_down
from proxy.channel import Answers, Gone, answer, receive, send
from proxy.ending import Ending, drain_or_stop
from proxy.families import Family
from proxy.metrics import Metrics
from proxy.operated import Moment
from proxy.pulse import Pulse
from proxy.reload import LogForm, Source
from proxy.server import PublicServer
from proxy.standstill import LastLine
from proxy.tls import Secured
from proxy.writer import unbuffered

BEGIN_WAIT: Final = 30.0
"""Seconds that a supervisor may take to say what is to be done."""

TELL_EVERY: Final = 0.5
"""Seconds of counts that are lost with a worker that is killed."""


@dataclass(frozen=True, slots=True)
class Orders:
    """What a worker serves, and where: the table's path names it in messages, its content is in the copies. `since` is
    when the gateway started, in unix seconds: all workers tell clients the same. `log` is the form of the log where the
    table does not say."""

    path: Path | None
    insecure_open: bool
    host: str
    port: int
    since: int
    copies: Copies
    log: LogForm = "json"


ORDERS: Final = TypeAdapter(Orders)
COPIES: Final = TypeAdapter(Copies)
MOMENT: Final = TypeAdapter(Moment)
FAMILIES: Final = TypeAdapter(list[Family])
"""How they travel."""


def main(descriptor: int, pulse: int) -> None:
    """Serve until the supervisor, or a signal, ends it; `descriptor` is this end of the socket pair, `pulse` that of
    the file by which the supervisor guards the event loop."""
    link = socket.socket(fileno=descriptor)
    link.set_inheritable(False)
    # A reload comes from the supervisor; whoever signals a whole group of processes must not end this one.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.set_inheritable(pulse, False)
    asyncio.run(work(link, Pulse.shared(pulse)))


async def work(link: socket.socket, pulse: Pulse) -> None:
    """See main."""
    reader, writer = await asyncio.open_unix_connection(sock=link)
    try:
        async with asyncio.timeout(BEGIN_WAIT):
            number, word, body = await receive(reader)
    except (Gone, TimeoutError):
        return  # there is nobody to begin for
    orders = ORDERS.validate_json(body)
    source = Source(orders.path, os.environ, orders.insecure_open, orders.host, log=orders.log)
    table = source.load(orders.copies)
    server = table.loaded.config.server
    log = prepare(server.log)
    ending = Ending()
    ending.listen()

    def opener(public: PublicServer, secured: Secured) -> Awaitable[asyncio.Server]:
        return listening(public, orders.host, orders.port, {"reuse_port": True, **secured})

    begin = (table, orders.since, orders.host, opener, Shown(unbuffered(sys.stdout), pulse))
    async with AsyncExitStack() as stack:
        # The supervisor is there first; this is for a worker that stands when it is gone.
        stack.enter_context(LastLine(pulse, 2 * server.stall_limit, server.log))
        try:
            app = await stack.enter_async_context(serving(*begin))
        except OSError as error:
            send(writer, number, word, str(error).encode())
            await closed(writer)
            return
        await stack.enter_async_context(background(app.work))
        settle_down()
        send(writer, number, word)

        async def talk() -> None:
            await answer(reader, writer, answers(app, source, ending))
            if not ending.first.is_set():
                log.warning("the supervisor is gone")
                ending.first.set()

        async with asyncio.TaskGroup() as group:
            talking = group.create_task(talk())
            telling = group.create_task(tell_counts(writer, app.metrics))
            await ending.first.wait()
            await drain_or_stop(app, server, ending)
            talking.cancel()
            telling.cancel()
        send(writer, 0, "counted", FAMILIES.dump_json(app.metrics.families()))
        await closed(writer)


async def tell_counts(writer: asyncio.StreamWriter, metrics: Metrics) -> None:
    """Let the supervisor have what changes, so that it is known of a worker that is killed; no more than it takes."""
    while not writer.is_closing():
        await asyncio.sleep(TELL_EVERY)
        if touched := metrics.touched():
            body = await asyncio.to_thread(lambda those: FAMILIES.dump_json(metrics.changes(those)), touched)
            send(writer, 0, "counted", body)
            try:
                await writer.drain()
            except ConnectionError:
                return


async def closed(writer: asyncio.StreamWriter) -> None:
    """Wait until everything has been sent, or nobody is there who would take it."""
    writer.close()
    try:
        await writer.wait_closed()
    except ConnectionError:
        return


def answers(app: Serving, source: Source, ending: Ending) -> Answers:
    """What a supervisor may ask."""

    async def take(body: bytes) -> bytes:
        table = await asyncio.to_thread(source.load, COPIES.validate_json(body))
        await app.take(table)
        return table.snapshot.digest.encode()

    async def families(body: bytes) -> bytes:
        return await asyncio.to_thread(lambda: FAMILIES.dump_json(app.metrics.families()))

    async def moment(body: bytes) -> bytes:
        return MOMENT.dump_json(app.operated.moment())

    async def drain(body: bytes) -> bytes:
        ending.first.set()
        return b""

    async def stop(body: bytes) -> bytes:
        ending.first.set()
        ending.second.set()
        return b""

    return {"table": take, "families": families, "moment": moment, "drain": drain, "stop": stop}
