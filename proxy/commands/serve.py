"""`dragoman serve`: the gateway on a table, until a signal ends it. Never the gateway's own parts."""

import asyncio
from dataclasses import dataclass

from proxy.app import Listen
from proxy.app import serve as run_gateway
from proxy.http_floor import require_sound_http
from proxy.reload import Source, Table
from proxy.terminal import CommandError


@dataclass(frozen=True, slots=True)
class Wanted:
    """The command line's words, which beat the table's: two ports and how many processes serve."""

    port: int | None = None
    admin_port: int | None = None
    workers: int | None = None


def serve(source: Source, wanted: Wanted) -> int:
    """Serve the table until a signal ends it."""
    require_sound_http()
    table = source.load_to_serve()
    listen = addresses(source, table, wanted)
    count = table.loaded.config.server.workers if wanted.workers is None else wanted.workers
    try:
        if count == 1:
            asyncio.run(run_gateway(source, table, listen))
        elif failure := asyncio.run(_supervised(source, table, listen, count)):
            raise CommandError(failure)
    except OSError as error:
        raise cannot_listen(listen, error) from None
    return 0


async def _supervised(source: Source, table: Table, listen: Listen, count: int) -> str:
    from proxy.supervisor import supervise

    return await supervise(source, table, listen, count)


def addresses(source: Source, table: Table, wanted: Wanted) -> Listen:
    """Where to listen: the command line's host and ports where given, else the table's."""
    server = table.loaded.config.server
    return Listen(
        host=source.host or server.host,
        port=server.port if wanted.port is None else wanted.port,
        admin_host=server.admin.host,
        admin_port=server.admin.port if wanted.admin_port is None else wanted.admin_port,
    )


def cannot_listen(listen: Listen, error: OSError) -> CommandError:
    """A listener that could not be opened; asyncio's text says which, a resolver's only what failed."""
    places = f"{listen.host}:{listen.port} and {listen.admin_host}:{listen.admin_port}"
    return CommandError(f"cannot listen on {places}: {error.strerror or error}")
