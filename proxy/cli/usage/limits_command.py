"""`dragoman limits`: show the remaining limits and budgets of the running gateway."""

import http.client
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any, Final
from urllib.parse import urlencode

from config.sections.server_section import AdminSection
from config.time_zones import zone_named
from config.units import duration
from providers.vendor_credential import Credential
from proxy.cli.terminal import CommandError, Style, paint
from proxy.cli.usage.known_table import known_table
from proxy.ledger.usage_report import shown
from proxy.process.load_table import Source

TIMEOUT_SECONDS: Final = 10.0
"""The maximum seconds to wait for the gateway's response."""

WILDCARDS: Final[Mapping[str, str]] = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - only compared
"""Listen addresses, and the address at which this machine reaches each."""


@dataclass(frozen=True, slots=True)
class LimitsOptions:
    """The options of the command line. `team` selects the limits of one team; `None`: all. `admin_port` is the port of
    the admin listener if the gateway was started with a port other than the configuration's."""

    team: str | None = None
    admin_port: int | None = None


Limit = Mapping[str, Any]  # Any: JSON of the gateway


def limits(source: Source, options: LimitsOptions, show: Callable[[Mapping[str, Any], tzinfo], None]) -> int:
    """Show the limits of the running gateway. Raises CommandError if no gateway is running, or if it does not have the
    team."""
    server = known_table(source).config.server
    found = asked(server.admin, options)
    if isinstance(unknown := found.get("unknown"), str):
        raise CommandError(shown(unknown))
    show(found, zone_named(server.timezone))
    return 0


def asked(admin: AdminSection, options: LimitsOptions) -> Mapping[str, Any]:
    """Return the response of the running gateway. Raises CommandError."""
    port = admin.port if options.admin_port is None else options.admin_port
    query = "" if options.team is None else "?" + urlencode({"team": options.team})
    return _understood(*fetched(admin, port, f"/limits{query}", TIMEOUT_SECONDS))


def fetched(admin: AdminSection, port: int, path: str, seconds: float) -> tuple[int, bytes, str]:
    """Return the status, the body and the address of the running gateway's admin listener. Raises CommandError if
    there is no response within `seconds`."""
    host = WILDCARDS.get(admin.host, admin.host)
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    headers = {} if admin.token is None else Credential("bearer", key=admin.token).headers()
    connection = http.client.HTTPConnection(host, port, timeout=seconds)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read(), place
    except ConnectionRefusedError:
        raise CommandError(
            f"no gateway listens for operators on {place}: start it with this config file, or give --admin-port"
        ) from None
    except (OSError, http.client.HTTPException) as error:
        raise CommandError(f"the gateway on {place} does not respond: {error or type(error).__name__}") from None
    finally:
        connection.close()


def _understood(status: int, body: bytes, place: str) -> Mapping[str, Any]:
    if status == 401:
        raise CommandError(f"the gateway on {place} refuses the configured admin token: it has another one")
    try:
        found = json.loads(body)
    except ValueError:
        found = None
    if status != 200 or not isinstance(found, dict) or not isinstance(found.get("limits"), list):
        raise CommandError(f"the server on {place} is not a gateway of this version: HTTP {status} for /limits")
    return found


# Forms --------------------------------------------------------------------------------------------------------------

_HEADS: Final = ("SCOPE", "LIMIT", "USED", "LEFT", "SHARE", "ENDS", "THEN")
_NUMBERS: Final = frozenset({"USED", "LEFT", "SHARE"})


def show_limits(found: Mapping[str, Any], zone: tzinfo) -> None:
    """Print a table, in the order of the gateway's response."""
    if found.get("alone"):
        print(paint("This gateway counts on its own now: Redis or the coordinator does not respond.", Style.YELLOW))
    if isinstance(evicted := found.get("evicted"), str):
        print(paint(f"{shown(evicted)}.", Style.YELLOW))
    if not found["limits"]:
        print("no limits" + (f" of team {shown(str(found['team']))}" if found.get("team") else ""))
        return
    heads, *rows = limits_table(found["limits"], zone)
    print(paint(heads, Style.BOLD))
    for limit, row in zip(found["limits"], rows, strict=True):
        print(paint(row, Style.RED) if limit["reached"] else row)


def show_limits_json(found: Mapping[str, Any], zone: tzinfo) -> None:
    """Print the gateway's response as JSON."""
    print(json.dumps(found, indent=2, ensure_ascii=False))


def limits_table(limits: Sequence[Limit], zone: tzinfo) -> list[str]:
    """Return aligned lines, the headings first. Times are in the configuration's time zone."""
    rows = [_HEADS, *(_cells(limit, zone) for limit in limits)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADS))]
    return [
        "  ".join(
            cell.rjust(width) if head in _NUMBERS else cell.ljust(width)
            for cell, width, head in zip(row, widths, _HEADS, strict=True)
        ).rstrip()
        for row in rows
    ]


def _cells(limit: Limit, zone: tzinfo) -> tuple[str, ...]:
    period = " at once" if limit["period"] is None else f" per {limit['period']}"
    ends = (
        "" if limit["ends"] is None else datetime.fromisoformat(limit["ends"]).astimezone(zone).strftime("%a %d %H:%M")
    )
    burst = f", {_number(limit['burst'])} in one go" if limit.get("burst") else ""
    if limit["kind"] == "budget":
        then = f"{limit['then']} at {limit['at']:.0%}"
    else:
        then = f"queue {duration(limit['queue_s'])}" if limit.get("queue_s") else "reject"
    return (
        shown(limit["scope"]),
        f"{_number(limit['limit'])} {_unit(limit)}{period}{burst}",
        _number(limit["used"]),
        _number(limit["remaining"]),
        f"{limit['ratio']:.0%}",
        ends,
        f"{then}, reached" if limit["reached"] else then,
    )


def _unit(limit: Limit) -> str:
    if limit["unit"] == "usd":
        return "USD"
    return str(limit["unit"]).removesuffix("s") if limit["limit"] == 1 else str(limit["unit"])


def _number(value: float) -> str:
    """Return a number with thousands separators. USD have two decimals, or more for small amounts."""
    if isinstance(value, int):
        return f"{value:,}"
    text = f"{value:,.2f}" if value >= 0.1 or not value else f"{value:.{6 if value >= 1e-6 else 9}f}"
    return re.sub(r"\.00$", "", text)


LIMIT_FORMS: Final[Mapping[bool, Callable[[Mapping[str, Any], tzinfo], None]]] = {
    False: show_limits,
    True: show_limits_json,
}
"""Output formats by whether `--json` is given."""
