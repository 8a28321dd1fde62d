"""The part of `dragoman demo` in which a team reaches its limit and the ledger shows it.

The embedded configuration has no teams, so it accepts any key. Therefore this part runs a second gateway on a
configuration in a temporary folder, which is deleted afterwards.
"""

import asyncio
import hashlib
import http.client
import io
import json
import secrets
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import urlsplit

from proxy.cli.terminal import CommandError, Style, paint
from proxy.cli.usage.usage_command import UsageOptions, usage
from proxy.ledger.usage_report import UsageReport, usage_table
from proxy.process.assemble_app import Addresses, running
from proxy.process.load_table import Source

REQUESTS: Final = 3
"""The team's requests per minute."""

# No admin port, so that `usage` does not ask another gateway, such as the demo's, for rows that wait for its ledger.
TABLE: Final = """\
version: 1
server: {{watch: false, admin: {{port: 0}}}}
vendors: {{mock: {{}}}}
models: {{mock/echo: {{price: {{input: 0.15, output: 0.60}}}}}}
teams:
  search:
    keys: [{{hash: "sha256:{digest}", name: demo}}]
    models: ["*"]
    limits: {{requests_per_minute: {most}}}
"""

BODY: Final = {"model": "mock/echo", "prompt": "How much may this team ask?", "max_tokens": 16}

RESPONSE_TIMEOUT: Final = 30.0
"""Seconds without a response after which a request fails."""


class LimitNotShown(Exception):
    """The team did not reach its limit, or the ledger does not show it. The message describes the actual result."""


async def show_team_limit() -> None:
    """Print a team's requests until one is refused, and the ledger's report on them. Raises LimitNotShown."""
    key = f"dk-{secrets.token_hex(16)}"
    with TemporaryDirectory(prefix="dragoman-demo-") as folder:
        path = Path(folder) / "table.yaml"
        path.write_text(TABLE.format(digest=hashlib.sha256(key.encode()).hexdigest(), most=REQUESTS), encoding="utf-8")
        source = Source(path, {}, log="text")
        try:
            listen = Addresses("127.0.0.1", 0, "127.0.0.1", 0)
            async with running(source, source.load(), listen, io.BytesIO()) as app:
                answers = await asyncio.to_thread(lambda: [asked(app.url, key) for _ in range(REQUESTS + 1)])
            statuses = [status for status, _ in answers]
            print(
                paint(
                    f"\nTeam search may make {REQUESTS} requests a minute, and made {len(answers)}:",
                    Style.BOLD,
                )
            )
            print(*statuses)
            if statuses != [200] * REQUESTS + [429]:
                raise LimitNotShown(
                    f"a limit of {REQUESTS} requests a minute let {statuses.count(200)} pass {answers[-1][1]}".rstrip()
                )
            print(answers[-1][1])
            print(paint("\ndragoman usage --by team,key,model", Style.BOLD))
            # All rows are in the ledger once its gateway has ended.
            await asyncio.to_thread(usage, source, UsageOptions("team,key,model", "1d"), show_report)
        except (OSError, CommandError) as error:
            raise LimitNotShown(str(error) or type(error).__name__) from None


def asked(url: str, key: str) -> tuple[int, str]:
    """Send one request. Return the status, and the message of an error. Status 0 means that there was no response."""
    address = urlsplit(url)
    with closing(
        http.client.HTTPConnection(address.hostname or "", address.port, timeout=RESPONSE_TIMEOUT)
    ) as connection:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
        try:
            connection.request("POST", "/v1/completions", json.dumps(BODY), headers)
            answer = connection.getresponse()
            body = json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            return 0, f"({error or type(error).__name__})"
        return answer.status, "" if answer.status == 200 else str(body["error"]["message"])


def show_report(report: UsageReport) -> None:
    """Print a report. Raises LimitNotShown if a request is missing in it."""
    total = report.total
    if (total.requests, total.errors) != (REQUESTS + 1, 1):
        raise LimitNotShown(f"the ledger has {total.requests} requests, of which {total.errors} were refused")
    for line in usage_table(report):
        print(line)
