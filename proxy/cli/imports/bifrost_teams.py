"""Convert Bifrost's virtual keys to teams, with their models, their routes for names without a provider, and their
limits.

A literal key becomes its SHA-256 digest; the config file needs no more.

Sources: Bifrost's pages "Governance", "Virtual Keys" and "Budget and Limits"; the migration guide of v1.5.0, November
2026.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Final

from config.problem import ConfigError, Problem
from providers.unified_request import Task
from proxy.cli.imports.endpoints import (
    ANY_MODEL,
    IS_ONE_SPACE,
    SAME_SPACE,
    DraftEndpoint,
    Endpoints,
    put_route,
    task_of,
)
from proxy.cli.imports.foreign_section import ForeignSection
from proxy.cli.imports.table_draft import Block, DraftValue, Reference, TableDraft
from proxy.cli.imports.table_values import is_variable, route_name, team_name, unused, variable

MAX_GRANTS: Final = 20_000
"""The maximum number of grants of a model to a team, over all teams."""

REASONS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("rate_limit_id", "budget_id"), "limits and budgets of a team are not for one provider alone"),
    "calendar_aligned": "limits by the hour and longer, and budgets, begin anew by the calendar",
    **dict.fromkeys(
        ("current_usage", "last_reset", "token_current_usage", "request_current_usage"), "what was used begins anew"
    ),
    **dict.fromkeys(("team_id", "customer_id"), "teams are not grouped"),
    "mcp_configs": "there are no MCP servers",
}

PERIODS: Final[Mapping[str, str]] = {
    **{"1s": "second", "1m": "minute", "60s": "minute", "1h": "hour", "60m": "hour"},
    **{"1d": "day", "24h": "day", "1w": "week", "7d": "week", "1M": "month"},
}
"""Periods of the configuration by Bifrost's duration."""

_BUDGETED: Final = frozenset({"hour", "day", "week", "month"})


@dataclass(slots=True)
class Offer:
    """A provider's models. `models` has each model's deployments, each with its weight and its key's names."""

    vendor: str
    models: dict[str, list[tuple[DraftEndpoint, float, Set[str]]]] = field(default_factory=dict)

    def add(self, model: str, names: Set[str], endpoint: DraftEndpoint, weight: float) -> None:
        """Add a deployment."""
        self.models.setdefault(model, []).append((endpoint, weight, names - {""}))


@dataclass(slots=True)
class _Grant:
    """The grants of one key: names, its own routes, and the targets of models without a provider."""

    models: dict[str, None] = field(default_factory=dict)
    routes: Block = field(default_factory=Block)
    bare: dict[str, list[tuple[str, float]]] = field(default_factory=dict)


@dataclass(slots=True)
class Teams:
    """Reads the virtual keys."""

    draft: TableDraft
    endpoints: Endpoints
    offers: Mapping[str, Offer]
    all_when_empty: bool
    variable_of: Callable[[str], str | None]
    _grants: int = 0
    _named: dict[tuple[str, str], ForeignSection] = field(default_factory=dict)

    def read(self, governance: ForeignSection) -> None:
        """Write a team for each virtual key, with the limits and the budget to which it refers."""
        for kind in ("budgets", "rate_limits"):
            for each in governance.sections(kind):
                self._named[kind, each.text("id") or ""] = each
        teams = self.draft.section("teams").entries
        for key in governance.sections("virtual_keys"):
            before = len(teams)
            self._team(key)
            key.remarks.count("virtual key", len(teams) - before, 1)
        for each in self._named.values():
            if each.taken == {"id"}:
                each.apart(self.draft.section("teams").comments).report_section("no virtual key names it: not taken")

    def _limits(self, key: ForeignSection, block: Block) -> None:
        """Write the limits and the budget of a virtual key."""
        found = self._named.get(("rate_limits", key.text("rate_limit_id") or ""))
        if found is not None:
            own = found.apart(key.comments)
            entries: dict[str, DraftValue] = {}
            for unit, name in (("requests", "request"), ("tokens", "token")):
                amount, period = own.number(f"{name}_max_limit"), PERIODS.get(own.text(f"{name}_reset_duration") or "")
                if amount is not None and (period is None or amount < 1):
                    own.report_key(
                        f"{name}_max_limit", "limits are 1 or more for one second, minute, hour, day, week or month"
                    )
                elif amount is not None:
                    entries[f"{unit}_per_{period}"] = int(amount)
            own.report_unread(REASONS)
            block.put("limits", Block(entries) if entries else None)
        elif "rate_limit_id" in key:
            key.report_key("rate_limit_id", "names no rate limit: not taken")
        self._budget(key, block)

    def _budget(self, key: ForeignSection, block: Block) -> None:
        found = self._named.get(("budgets", key.text("budget_id") or ""))
        if found is not None:
            own = found.apart(key.comments)
            amount, period = own.number("max_limit"), PERIODS.get(own.text("reset_duration") or "")
            if amount is None or period not in _BUDGETED or amount < 0.01:
                own.report_key("max_limit", "budgets are 0.01 USD or more for one hour, day, week or month")
            else:
                block.put("budget", Block({"usd": amount, "per": period}))
            own.report_unread(REASONS)
        elif "budget_id" in key:
            key.report_key("budget_id", "names no budget: not taken")

    def _team(self, key: ForeignSection) -> None:
        teams = self.draft.section("teams")
        wanted = team_name(key.text("name") or key.text("id") or "")
        key.text("id")
        if key.flag("is_active") is False:
            key.apart(teams.comments).report_section("is not active: not taken")
            return
        digest = self._digest(key, wanted)
        if digest is None:
            teams.comments += key.comments
            return
        block = Block({"keys": [digest]}, key.comments)
        grant = _Grant()
        for each in key.sections("provider_configs"):
            self._provider(each.apart(key.comments), grant)
        for name, targets in grant.bare.items():
            if name not in grant.routes.entries:
                settings = self._space_settings(name, targets)
                if settings:
                    key.remark(IS_ONE_SPACE)
                put_route(grant.routes, name, targets, "weighted", (), settings)
        names: list[DraftValue] = [*grant.models]
        block.put("models", names)
        if grant.routes.entries:
            block.put("routes", grant.routes)
        self._limits(key, block)
        key.report_unread(REASONS)
        teams.put(unused(wanted, teams.entries), block)

    def _space_settings(self, name: str, targets: Sequence[tuple[str, float]]) -> Mapping[str, DraftValue]:
        """Return the settings that a route over several providers needs if its model is an embedding model."""
        several = len({target for target, _ in targets}) > 1
        return {SAME_SPACE: True} if several and task_of(name, "openai") is Task.EMBEDDINGS else {}

    def _digest(self, key: ForeignSection, team: str) -> str | Reference | None:
        text = key.text("value")
        if not text:
            key.report_section("has no value, and so no key: make one with `dragoman key new`; not taken")
            return None
        name = self.variable_of(text)
        if name is None:
            return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
        wanted = f"{name}_DIGEST" if is_variable(name) else variable(team, "digest")
        key.note("value", f"the config file has digests of keys: put `sha256:` and the key's digest into {wanted}")
        return self.draft.refer(wanted, f"sha256:{hashlib.sha256(wanted.encode()).hexdigest()}")

    def _provider(self, each: ForeignSection, grant: "_Grant") -> None:
        provider = each.text("provider") or ""
        offer = self.offers.get(provider)
        weight = each.number("weight")
        allowed = each.texts("allowed_models") or ([ANY_MODEL] if self.all_when_empty else [])
        keys = set(each.texts("key_ids")) or ({ANY_MODEL} if self.all_when_empty else set())
        if offer is None:
            each.report_section("names a provider that the configuration does not have: not taken")
            return
        if not allowed or not keys:
            each.report_section("allows no model or no key: nothing of it is granted")
            return
        known = offer.models if ANY_MODEL in allowed else {name: offer.models.get(name) for name in allowed}
        self._check_keys(each, offer, keys, any(name == ANY_MODEL or found is None for name, found in known.items()))
        everything = ANY_MODEL in allowed and ANY_MODEL in keys
        for model, found in known.items():
            self._count(each)
            if everything and found:
                grant.models.update(
                    {f"{self.endpoints.key(endpoint).partition('/')[0]}/*": None for endpoint, _, _ in found}
                )
            else:
                self._model(each, offer, model, keys, grant)
            if model != ANY_MODEL and found:
                targets = self._reached(found, keys)[:1]
                name = route_name(model)
                for target in targets:
                    grant.bare.setdefault(name, []).append((target, 1.0 if weight is None else weight))
        each.report_unread(REASONS)

    def _check_keys(self, each: ForeignSection, offer: Offer, keys: set[str], open_ended: bool) -> None:
        every = [names for deployments in offer.models.values() for _, _, names in deployments]
        if not keys <= {ANY_MODEL}.union(*every):
            each.report_key("key_ids", "names a key that the provider does not have")
        anything = [names for _, _, names in offer.models.get(ANY_MODEL, ())]
        if open_ended and ANY_MODEL not in keys and not all(names & keys for names in anything):
            each.report_key("key_ids", f"cannot be held for models of {offer.vendor}/*: every key may be used for them")

    def _model(
        self,
        each: ForeignSection,
        offer: Offer,
        model: str,
        keys: set[str],
        grant: "_Grant",
    ) -> None:
        """Grant one model, either directly or as a route with its name over the deployments of the allowed keys."""
        found = offer.models.get(model)
        if found is None or model == ANY_MODEL:
            if ANY_MODEL in offer.models:
                grant.models[f"{offer.vendor}/{model if found else route_name(model)}"] = None
            else:
                each.report_key("allowed_models", "names a model that no key of the provider lists")
            return
        key = self.endpoints.key(found[0][0])
        mine = [(self.endpoints.pinned(endpoint), weight) for endpoint, weight, names in found if names & keys]
        if ANY_MODEL in keys or len(mine) == len(found):
            grant.models[key] = None
        elif mine:
            put_route(grant.routes, key, mine, "weighted")

    def _reached(self, found: list[tuple[DraftEndpoint, float, Set[str]]], keys: set[str]) -> list[str]:
        if ANY_MODEL in keys or all(names & keys for _, _, names in found):
            return [self.endpoints.key(found[0][0])]
        return [self.endpoints.key(found[0][0]) for _, _, names in found if names & keys]

    def _count(self, section: ForeignSection) -> None:
        self._grants += 1
        if self._grants > MAX_GRANTS:
            raise ConfigError([Problem.at(section.node.at, section.path, f"more than {MAX_GRANTS} models of teams")])
