"""`dragoman serve`: run the gateway on a configuration until a signal ends it."""

import asyncio
from dataclasses import dataclass, replace
from typing import Literal

from proxy.cli.terminal import CommandError
from proxy.ledger.ledger_settings import LedgerRefusedError
from proxy.listener.aiohttp_version import installed_fault
from proxy.process.assemble_app import Addresses
from proxy.process.assemble_app import serve as run_gateway
from proxy.process.load_table import LoadedTable, Source
from proxy.workers.usable_cores import usable_cores


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """The options of the command line that override the configuration: the admin port and the number of worker
    processes."""

    admin_port: int | None = None
    workers: int | Literal["auto"] | None = None


def serve(source: Source, options: ServeOptions) -> int:
    """Serve the configuration until a signal ends it."""
    require_sound_http()
    table = source.load_to_serve()
    listen = addresses(source, table, options)
    wanted = table.loaded.config.server.workers if options.workers is None else options.workers
    count = usable_cores() if wanted == "auto" else wanted
    source = replace(source, workers=count, counted=wanted == "auto")
    table = replace(table, loaded=source.with_settings(table.loaded).without_positions())
    if count > 1:
        return _serve_by_several(source, table, listen, count)
    try:
        asyncio.run(run_gateway(source, table, listen))
    except LedgerRefusedError as error:
        raise CommandError(str(error)) from None
    except OSError as error:
        raise cannot_listen(listen, error) from None
    return 0


def _serve_by_several(source: Source, table: LoadedTable, listen: Addresses, count: int) -> int:
    from proxy.workers.assemble_supervisor import supervise
    from proxy.workers.worker_template import fork_template

    # Every worker returns from this call and raises SystemExit, so no resource may be open around it.
    template = fork_template(table)
    try:
        failure = asyncio.run(supervise(source, table, listen, count, template))
    except LedgerRefusedError as error:
        raise CommandError(str(error)) from None
    except OSError as error:
        raise cannot_listen(listen, error) from None
    if failure:
        raise CommandError(failure)
    return 0


def require_sound_http() -> None:
    """Raise CommandError if the installed aiohttp must not be used."""
    fault = installed_fault()
    if fault is not None:
        raise CommandError(fault)


def addresses(source: Source, table: LoadedTable, options: ServeOptions) -> Addresses:
    """Return the listen addresses. The command line overrides the configuration."""
    server = table.loaded.config.server
    return Addresses(
        host=source.host or server.host,
        port=server.port if source.port is None else source.port,
        admin_host=server.admin.host,
        admin_port=server.admin.port if options.admin_port is None else options.admin_port,
    )


def cannot_listen(listen: Addresses, error: OSError) -> CommandError:
    """Return the error for a listener that could not be opened. The message names both addresses, because a resolver's
    error does not."""
    places = f"{listen.host}:{listen.port} and {listen.admin_host}:{listen.admin_port}"
    return CommandError(f"cannot listen on {places}: {error.strerror or error}")
