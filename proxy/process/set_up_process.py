"""The set-up of a process that serves: its log, its limits, its memory, and its log lines about the configuration."""

import asyncio
import codecs
import gc
import logging
from collections.abc import Callable, Iterator
from functools import partial

from providers.context_overflow_patterns import compile_signatures
from providers.vendor_text.late_pattern import compile_late_patterns
from proxy.background_tasks import Work
from proxy.http_client.dialer import Dialer, tls
from proxy.listener.tls import keep_small_buffers
from proxy.process.c_allocator import return_large_buffers
from proxy.process.file_descriptors import AcceptFailureLog, raise_limit
from proxy.process.load_table import EMBEDDED, Source
from proxy.routing.resolve_model import targets_of_names
from proxy.routing.snapshot import Snapshot
from proxy.telemetry.process_log import set_up

COLLECT_AFTER = (100_000, 3, 2)
"""Thresholds of the garbage collector. The first threshold is a number of objects, in addition to the objects of
requests in flight.

A request leaves no reference cycle, so a collection frees none of the objects that it visits. It takes 60 to 100 ms for
100,000 objects that are in no processor cache. In 38 s with phases of three times the capacity there were 156
collections with a threshold of 10,000, 2.4 s in all, and 7 with 100,000, 0.46 s. A full collection comes after 1.2
million objects, as with (10,000, 10, 10).
"""

REQUEST_OBJECTS = 120
CONNECTION_OBJECTS = 20
"""The approximate numbers of objects of a request in flight with its connection to the vendor, and of objects of a
client's connection (99 and 19 were counted)."""

FOLLOW_EVERY = 0.1
"""Seconds between two updates of the threshold. Even a burst of requests creates fewer than COLLECT_AFTER objects in
this time."""


def set_up_process(form: str) -> logging.Logger:
    """Set up the log, the limits, the allocator and the exception handler of a process that serves."""
    log = set_up(form)
    raise_limit()
    keep_small_buffers()
    return_large_buffers()
    asyncio.get_running_loop().set_exception_handler(AcceptFailureLog(log))
    return log


def load_shareable() -> None:
    """Load what serving needs and a fork may share, in addition to the modules and the configuration: the certificate
    authorities that the system trusts, which take 1 MB, the codec of host names, and the patterns for vendors'
    failures."""
    tls()
    codecs.lookup("idna")
    compile_patterns()


def late_services(dialer: Dialer, snapshot: Snapshot) -> Iterator[Callable[[], Work]]:
    """Yield the work to do once the gateway is ready: compiling the patterns for vendors' failures, and loading the
    certificate authorities that the system trusts, if a deployment is called by https. A call that needs them earlier
    loads them itself."""
    yield _compile
    if any(target.base_url.startswith("https:") for _, targets in targets_of_names(snapshot) for target in targets):
        yield partial(_load, dialer)


def compile_patterns() -> None:
    """Compile the patterns for vendors' failures, which takes 17 ms."""
    compile_late_patterns()
    compile_signatures()


async def _compile() -> None:
    await asyncio.to_thread(compile_patterns)


async def _load(dialer: Dialer) -> None:
    await dialer.load_authorities()


def log_table(log: logging.Logger, source: Source) -> None:
    """Log which configuration is served, and the number of processes if the operator has not set it."""
    if source.path is None:
        log.warning("%s", EMBEDDED)
    else:
        log.info("serving the configuration %s", source.title)
    if source.counted:
        log.info("workers: auto is %d, the number of cores that may be used", source.workers)


def tune_garbage_collector() -> None:
    """Make the garbage collector examine only the objects that requests create. Modules and configuration are left out,
    because examining them each time would hold every request up for 40 ms."""
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)


def objects_held(requests: int, connections: int) -> int:
    """Return the approximate number of objects that requests in flight and connections of clients hold."""
    return REQUEST_OBJECTS * requests + CONNECTION_OBJECTS * connections


async def collect_by_load(held: Callable[[], int]) -> None:
    """Tune the garbage collector, and until cancelled raise its threshold by `held`, the number of objects in use.
    Without this, a burst of requests would cause collections that find no cycles."""
    tune_garbage_collector()
    first, *others = COLLECT_AFTER
    while True:
        await asyncio.sleep(FOLLOW_EVERY)
        gc.set_threshold(first + held(), *others)
