"""The status of a gateway as JSON values, for scripts. Pure."""

from collections.abc import Mapping, Sequence

from config.problem import Problem
from proxy.admin.failed_requests import FailedRequest
from proxy.admin.last_hour.hour_json import hour_json
from proxy.admin.recent_requests import RecentUse, RecentUses
from proxy.admin.reload_history import PastReload
from proxy.admin.route_states import RouteRow, gateway_state, health_of, route_rows
from proxy.admin.status import GatewayView, status_facts
from proxy.telemetry.log_format import timestamp


def status_json(view: GatewayView, reloads: Sequence[PastReload], warnings: Sequence[Problem]) -> dict[str, object]:
    """Return the response to `GET /status`."""
    status, routes = view.status, route_rows(view.snapshot, view.status)
    health = {target.label: health_of(status, target) for target in view.snapshot.targets()}
    state = gateway_state(view, health, routes, reloads)
    facts = status_facts(view.snapshot, status, view.ledger)
    if view.workers is not None:
        facts["workers"] = [str(worker) for worker in view.workers]
    return {
        **facts,
        "state": state.level.name.lower(),
        "state_reasons": list(state.reasons),
        "failing_names": list(state.failing),
        "config_refused": list(state.refused),
        "ledger_rows_waiting": None if view.ledger is None else view.ledger.waiting,
        "uptime_s": int(view.now - view.since),
        "states": {label: each.name.lower() for label, each in sorted(status.states.items())},
        "route_targets": [_route(row) for row in routes],
        "recent": recent_json(status.recent),
        "last_hour": hour_json(status.hour),
        "failed_requests": [_failed(request) for request in status.failed],
        "reloads": [_reload(each) for each in reloads],
        "warnings": [str(warning) for warning in warnings],
    }


def _route(row: RouteRow) -> dict[str, object]:
    targets = [
        {
            "name": target.name,
            "share": target.share,
            "state": target.health.name.lower(),
            "deployments": target.deployments,
            "available": target.up,
            "skipped": target.why or None,
        }
        for target in row.targets
    ]
    return {
        "route": row.name,
        "team": row.team or None,
        "policy": row.policy,
        "state": row.state.name.lower(),
        "targets": targets,
        "more": row.more,
        "fallbacks": list(row.fallbacks),
    }


def recent_json(recent: RecentUses) -> dict[str, object]:
    """Return counts and times of the last minutes."""
    used = {label: _use(use, recent.seconds) for label, use in sorted(recent.deployments.items())}
    return {"seconds": round(recent.seconds), "whole": _use(recent.whole, recent.seconds), "deployments": used}


def tokens_per_second(use: RecentUse, seconds: float) -> float:
    """Return the generated tokens per second of a window; a window shorter than a second counts as one second."""
    return use.tokens / max(1.0, seconds)


def _use(use: RecentUse, seconds: float) -> Mapping[str, object]:
    return {
        "requests": use.requests,
        "errors": use.errors,
        "refused": use.refused,
        "prompt_tokens": use.prompt,
        "cached_tokens": use.cached,
        "tokens_per_second": round(tokens_per_second(use, seconds), 2),
        "first_token_p50_s": _rounded(use.first(0.5)),
        "first_token_p95_s": _rounded(use.first(0.95)),
        "duration_p50_s": _rounded(use.duration(0.5)),
        "duration_p95_s": _rounded(use.duration(0.95)),
    }


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 4)


def _failed(request: FailedRequest) -> dict[str, object]:
    return {
        "time": timestamp(request.when),
        "request_id": request.request_id,
        "team": request.team,
        "surface": request.surface,
        "model": request.model,
        "status": request.status,
        "outcome": request.outcome,
        "code": request.code or None,
        "plugin": request.plugin or None,
        "reason": request.reason or None,
        "limit": request.limit or None,
        "client": request.client or None,
        "duration_ms": request.milliseconds,
        "attempts": [
            {
                "deployment": attempt.deployment,
                "outcome": attempt.outcome,
                "status": attempt.status,
                "duration_ms": attempt.milliseconds,
                "message": attempt.message or None,
            }
            for attempt in request.attempts
        ],
        "attempts_left_out": request.more,
    }


def _reload(past: PastReload) -> dict[str, object]:
    return {
        "time": timestamp(past.when),
        "result": past.result,
        "table": past.digest,
        "changes": list(past.changes),
        "problems": list(past.problems),
    }
