"""Find the parts of a dashboard that Grafana's own model, `grafana-foundation-sdk` in an environment of its own, does
not know.

python -m tests.observe.grafana_schema lock   choose its version anew (needs uv)

The SDK is generated from Grafana's schemas (https://github.com/grafana/grafana-foundation-sdk, here for 11.6, as of
November 2026). It reads the fields that it knows and writes them again: a field that is missing or different then is
unknown to Grafana, or has another form.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.support.environments import Environment

ENVIRONMENT: Final = Environment(
    "grafana",
    Path(__file__).with_name("grafana.lock"),
    ("grafana-foundation-sdk==1769699379!11.6.0",),
    "python -m tests.observe.grafana_schema lock",
)


def unknown_members(written: object, read: object, path: str = "") -> Iterator[str]:
    """Yield the paths at which the dashboard `read` by the model lacks or changes a `written` value."""
    match written, read:
        case dict(), dict():
            for name, value in written.items():
                if name in read:
                    yield from unknown_members(value, read[name], f"{path}.{name}")
                elif value is not None:
                    yield f"{path}.{name} is unknown"
        case list(), list():
            if len(written) != len(read):
                yield f"{path} has another length"
            for position, (one, other) in enumerate(zip(written, read, strict=False)):
                yield from unknown_members(one, other, f"{path}[{position}]")
        case _ if written != read:
            yield f"{path} is {read!r} where {written!r} is written"


def judge() -> None:
    """Run in the environment: read dashboards from stdin, one a line, and write them as Grafana's model has them."""
    from grafana_foundation_sdk.cog.encoder import JSONEncoder  # type: ignore[import-not-found]
    from grafana_foundation_sdk.cog.plugins import register_default_plugins  # type: ignore[import-not-found]
    from grafana_foundation_sdk.models.dashboard import Dashboard  # type: ignore[import-not-found]

    register_default_plugins()
    for line in sys.stdin:
        text = json.dumps(Dashboard.from_json(json.loads(line)), cls=JSONEncoder)
        sys.stdout.write(text.replace("\n", "") + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1:] == ["lock"]:
        ENVIRONMENT.write_lock()
    else:
        judge()
