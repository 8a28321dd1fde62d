"""The built-in default of every deployment setting: what holds where no level of the table writes it. Times in seconds.

`config.table.inheritance` fills these in, the descriptions of the sections quote them, and the gateway's own rules
for retries and circuit breakers begin with them. The defaults of the `server` section stand at its fields, in
`config/sections/server_section.py`.
"""

from typing import Final, Literal

# Deadlines: `timeouts`.
CONNECT_TIMEOUT: Final = 5.0
FIRST_EVENT_TIMEOUT: Final = 60.0
IDLE_TIMEOUT: Final = 120.0
TOTAL_TIMEOUT: Final = 600.0
PROGRESS_TIMEOUT: Final = 600.0
STREAM_TIMEOUT: Final = 3600.0
KEEP_ALIVE: Final = 20.0
"""A third of the 60 s after which load balancers close a silent connection."""
ANSWER_TIMEOUT: Final = 120.0
"""Only while another target may be called, and no less than `first_event`; otherwise `total` alone limits an answer:
it begins when all of it has been generated, so a slow one looks like one that hangs."""
STREAM_UPSTREAM: Final[Literal["auto", "off"]] = "off"
"""Every chunk of a stream costs processor time; one whole body costs far less."""

# Failover: `retries`.
ATTEMPTS: Final = 3
RETRY_SAFETY: Final[Literal["safe", "strict", "off"]] = "safe"
SAME_DEPLOYMENT_RETRIES: Final = 0

# `retries.budget`: tokens gained with each request and each second, and the least that a full budget holds.
RETRY_BUDGET_SHARE: Final = 0.2
RETRY_BUDGET_PER_SECOND: Final = 1.0
RETRY_BUDGET_LEAST: Final = 10.0

# `circuit_breaker`.
BREAKER_FAILURES: Final = 5
COOLDOWN: Final = 5.0
LONGEST_COOLDOWN: Final = 5.0
"""No longer than the first: a trial after each cooldown costs one request, and a primary that is back is to be used."""

# `concurrent`: no limit is built in.
CONCURRENT_WAIT: Final = 1.0
"""How long a request waits for a place at a deployment with a concurrency limit; no setting changes it."""

# What clients may send.
ON_UNSUPPORTED: Final[Literal["error", "drop"]] = "error"
MEDIA_SCHEMES: Final = ("https", "data")


def duration(seconds: float) -> str:
    """Return a duration as a table writes it: whole days as `1d` and hours as `1h`, else seconds as `600s`."""
    for unit, length in (("d", 86400), ("h", 3600)):
        if seconds and seconds % length == 0:
            return f"{seconds / length:g}{unit}"
    return f"{seconds:g}s"


def size(number: int) -> str:
    """Return bytes as a table writes them, in the largest unit of which they are a whole number: `32MiB`."""
    for unit, length in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if number and number % length == 0:
            return f"{number // length}{unit}"
    return f"{number} bytes"


def share(number: float) -> str:
    """Return a share of 1 as the configuration writes it: `3%`."""
    return f"{100 * number:.6g}%"
