"""Views of a gateway with every kind of trouble, and names that would be markup if a page did not escape them."""

from proxy.accounting.usage_reports import LedgerNow
from proxy.admin.failed_requests import FailedAttempt, FailedRequest
from proxy.admin.page_model import PageQuery, StatusPage, status_page
from proxy.admin.recent_requests import RecentUse, RecentUses
from proxy.admin.reload_history import PastReload
from proxy.admin.status import DeploymentState, GatewayView, ProcessStatus, WorkerNow
from proxy.deployment_health.concurrency_limit import Limited
from proxy.deployment_health.last_failures import Noted
from proxy.limits.limit import Period, Unit
from proxy.limits.limit_views import LimitKind, LimitView
from proxy.request_record import Outcome
from proxy.routing.snapshot import Snapshot
from tests.proxy.admin.last_hour.kit import hour
from tests.proxy.kit.tables import snapshot

NOW = 1_790_000_000.0
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u202e&amp;\x00\udcff"

TABLE = """\
vendors:
  mock: {}
  v: {profile: openai_compatible, base_url: "https://v.example/v1", api_key: "${KEY}"}
models:
  mock/echo: {}
  v/m: {deployments: {a: {}, b: {}, c: {}, d: {}}}
routes: {fast: {targets: [mock/echo, v/m]}}
"""

USE = RecentUse(20, 5, 1, 600, (0, 0, 10), (0, 4), prompt=800, cached=300)


def table() -> Snapshot:
    return snapshot(TABLE)


def failed(number: int = 1, text: str = "it broke") -> FailedRequest:
    attempt = FailedAttempt("v/m/a", "server", 500, 120, text)
    outcome: Outcome = "upstream_error"
    facts = ("search", "v/m", "openai", 502)
    return FailedRequest(NOW - number, f"req-{number}", *facts, outcome, outcome, 1500, (attempt, attempt))


def status(text: str = "it broke") -> ProcessStatus:
    """Return a status with one deployment of each state. `text` is in every field that a client or a vendor
    controls.
    """
    return ProcessStatus(
        True,
        3,
        2,
        {"v/m/a": 12.0, "v/m/b": 70.0},
        last_failures={"v/m/a": Noted("v/m/a", NOW - 60, f"server, status 500: {text}")},
        limited={"v/m/d": Limited(4, "operator", 4, 2), "mock/echo/default": Limited(9, "operator", 0, 0)},
        limits=(
            LimitView("team search", LimitKind.QUOTA, Unit.TOKENS, Period.DAY, 1000, 900, round(NOW) + 60),
            LimitView("team search", LimitKind.BUDGET, Unit.USD, Period.MONTH, 10**10, 10**10, reached=True),
        ),
        states={
            "v/m/a": DeploymentState.OPEN,
            "v/m/b": DeploymentState.COOLING,
            "v/m/c": DeploymentState.HALF_OPEN,
        },
        recent=RecentUses(300.0, USE, {"v/m/a": USE}),
        failed=(failed(1, text), failed(2, text)),
        hour=hour(text),
    )


def view(text: str = "it broke", **changes: object) -> GatewayView:
    facts: dict[str, object] = {
        "snapshot": table(),
        "status": status(text),
        "ledger": LedgerNow("/var/ledger.db", 0.5, 3, 0, None),
        "since": round(NOW) - 90_061,
        "now": NOW,
        "workers": (WorkerNow("worker 1 (process 7)", table().digest, 2), WorkerNow("worker 2 (process 8)", "ff", 1)),
    }
    return GatewayView(**{**facts, **changes})  # type: ignore[arg-type]  # named as the fields are


RELOADS = (
    PastReload(NOW - 10, "abc", (), ("t.yaml:2:3 models: no vendor named v",)),
    PastReload(NOW - 20, "abc", ("model mock/two added",)),
)


def page(text: str = "it broke", query: PageQuery | None = None, **changes: object) -> StatusPage:
    """Return the page of such a view."""
    return status_page(view(text, **changes), RELOADS, (), query or PageQuery())
