"""Write `docs/reference/log.md`: every field of the log's JSON lines, from the tables of fields that the writers are
tested against.

`python -m tests.observe.log_page` writes it.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from proxy.payload_log.payload_fields import PAYLOAD_FIELDS
from proxy.telemetry.line_fields import (
    ATTEMPT_FIELDS,
    MALFORMED_FIELDS,
    PROCESS_FIELDS,
    REFUSAL_FIELDS,
    REQUEST_FIELDS,
    LineField,
)

FILE: Final = Path(__file__).resolve().parents[2] / "docs" / "reference" / "log.md"

HEAD: Final = """\
# Log lines

Every field of the lines of `server.log: json`, written by `make generate` from the tables against which the writers are
tested. A line has at most 4096 bytes and holds no prompt, no response and no key. The fields of the payload log, which
is a file of its own and off unless configured, stand last. [Operate](../operate.md#logs) has how to read the log with
`dragoman logs`.
"""

TABLES: Final = (
    ("A request, on standard output", REQUEST_FIELDS),
    ("An entry of `attempts`", ATTEMPT_FIELDS),
    ("Requests refused before they were read, on standard output", REFUSAL_FIELDS),
    ("Input that was not HTTP, on standard output", MALFORMED_FIELDS),
    ("The process itself, on standard error", PROCESS_FIELDS),
    ("The payload log, in its file", PAYLOAD_FIELDS),
)


def log_page() -> str:
    """Return the text of the page."""
    return HEAD + "".join(line for title, fields in TABLES for line in _table(title, fields))


def _table(title: str, fields: Iterable[LineField]) -> Iterator[str]:
    yield f"\n## {title}\n\n| field | type | unit | present | meaning | example |\n|---|---|---|---|---|---|\n"
    for field in fields:
        yield (
            f"| `{field.name}` | {field.kind} | {field.unit} | {field.when} | {field.text} | "
            f"`{field.example.replace('|', chr(92) + '|')}` |\n"
        )


if __name__ == "__main__":
    FILE.write_text(log_page(), encoding="utf-8")
