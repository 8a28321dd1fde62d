"""A limiter of one team whose clock a test sets, and requests that it admits."""

import pytest

from providers.completion import Usage
from proxy.errors import GatewayError
from proxy.limits.limit_registry import LimitRegistry
from proxy.request_record import Attempt, RequestRecord
from proxy.routing.deployment_load import IDLE
from proxy.routing.request_plan import Plan
from proxy.routing.resolve_model import plan_for
from proxy.teams.team_limiter import Later, RequestSize, TeamLimiter
from tests.proxy.kit.tables import digest_of, snapshot

WALL = 1_795_003_200.0
"""2026-11-18 12:00 UTC."""

TABLE = """
vendors:
  v: {{profile: openai, api_key: k}}
models:
  v/m: {{price: {{input: 1, output: 2}}, max_output_tokens: 500}}
  v/vectors: {{price: {{input: 1}}}}
  v/unpriced: {{}}
  v/*: {{}}
routes:
  mixed: {{targets: [v/m, v/unpriced]}}
  small: {{targets: [v/m]}}
teams:
  t:
    keys: [{{hash: "{hash}", name: ci{key}}}]
    models: ["*"]
    {team}
"""


class Desk:
    """A limiter of one team with a settable clock."""

    def __init__(self, team: str = "", key: str = "") -> None:
        self.now, self.wall = 0.0, WALL
        registry = LimitRegistry(lambda: self.now, lambda: self.wall)
        self.limiter = TeamLimiter(registry, lambda: self.now, lambda: self.wall, lambda: 0.0)
        self.refused: list[tuple[str, str]] = []
        self.limiter.refused = lambda team, limit: self.refused.append((team, limit))
        self.use(team, key)

    def use(self, team: str = "", key: str = "") -> None:
        text = TABLE.format(hash=digest_of("k"), key=key, team=team.replace("\n", "\n    "))
        self.table = snapshot(text)
        (self.key,) = self.table.keys.values()
        self.limiter.use(self.table)

    def plan(self, name: str = "v/m") -> Plan:
        return plan_for(self.table, self.key.team, name, "openai", IDLE)

    def ask(self, size: RequestSize | None = None, name: str = "v/m") -> RequestRecord:
        record = RequestRecord("r", 0.0, "openai", "/", team="t", asked=name)
        assert self.later(record, size, name) is None
        return record

    def later(self, record: RequestRecord, size: RequestSize | None = None, name: str = "v/m") -> Later | None:
        return self.limiter.admit(self.key, self.plan(name), record, lambda: size or (40, 100, 1))

    def refusal(self, size: RequestSize | None = None, name: str = "v/m") -> GatewayError:
        with pytest.raises(GatewayError) as raised:
            self.ask(size, name)
        return raised.value

    def used(self) -> dict[str, int]:
        found = self.limiter.registry.views(self.now, self.wall)
        return {f"{each.scope}: {each.unit} {each.period or each.kind}": each.used for each in found}


def ended(record: RequestRecord, usage: Usage | None, price: bool = True, attempts: int = 1) -> None:
    record.attempts = [Attempt("v/m/default", 0.0)] * attempts
    record.usage = usage
    record.price = (
        snapshot(TABLE.format(hash=digest_of("k"), key="", team="")).models["v/m"].targets[0].price if price else None
    )
    assert record.held is not None
    record.held.end(record)


def tokens_of(record: RequestRecord) -> int:
    assert record.held is not None
    return record.held.tokens
