"""Convert LiteLLM's names for clients and its fallbacks to routes.

A group is all entries with the same `model_name`. The route of a group with fallbacks has the group's own deployments
first. If the group has several deployments, they get a route of their own, `NAME.group`. The fallbacks of fallbacks are
included, in the order in which LiteLLM tries them. No group is included twice in a route, so two groups may be each
other's fallback.

Sources: LiteLLM's pages "Fallbacks" and "Load Balancing"; `router.py` of litellm 1.108.7, November 2026.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from config.problem import shown
from providers.unified_request import Task
from proxy.cli.imports.endpoints import (
    ANY_MODEL,
    IS_ONE_SPACE,
    MAX_TARGETS,
    OTHER_SPACE,
    SAME_SPACE,
    DraftEndpoint,
    Endpoints,
    Share,
    put_route,
)
from proxy.cli.imports.foreign_section import ForeignSection
from proxy.cli.imports.litellm.access import ClientNames
from proxy.cli.imports.litellm.deployments import ModelEntry
from proxy.cli.imports.litellm.fallback_order import MAX_FALLBACKS, fallback_order
from proxy.cli.imports.table_draft import Block, DraftValue, TableDraft
from proxy.cli.imports.table_values import route_name, unused

POLICIES: Final[Mapping[str, str]] = {
    "simple-shuffle": "weighted",
    "least-busy": "least_busy",
    "latency-based-routing": "fastest",
}

KINDS: Final[Mapping[str, str]] = {
    "context_window_fallbacks": "context_window",
    "content_policy_fallbacks": "content_filter",
}
"""The key in a route's `fallbacks` for each of LiteLLM's lists of fallbacks for one reason."""


HIDDEN: Final[Mapping[str, DraftValue]] = {"listed": False}
"""The settings of `NAME.group`, which has the deployments of a group with fallbacks, and of aliases that LiteLLM
hides."""

_UNLIKE: Final = "names a model for other requests, or of another space of vectors: not taken"


@dataclass(slots=True)
class NameGroup:
    """The entries of one `model_name`. `then` are its general fallbacks; `by_kind` are its fallbacks for one reason, by
    the kind of failure."""

    name: str
    entries: list[ModelEntry] = field(default_factory=list)
    then: list[str] = field(default_factory=list)
    by_kind: dict[str, list[str]] = field(default_factory=dict)
    comments: list[str] = field(default_factory=list)

    @property
    def is_pattern(self) -> bool:
        return ANY_MODEL in self.name


@dataclass(frozen=True, slots=True)
class _Resolved:
    """A group without its fallbacks: its deployments with their weights, its new targets, and the policy that orders
    them. `model` is the model with which the group is identical, if there is one. `models` are at most two of its
    models."""

    shares: list[Share]
    targets: list[tuple[str, float]]
    policy: str
    model: str | None
    models: list[str]


@dataclass(slots=True)
class Routes:
    """Collects groups and fallbacks, and writes the routes. `policy` applies to groups whose entries have no order.

    `_names` has the name of each group's route. `_inner` has the name of the route to the group's own deployments.
    `_plain` are the groups that need no route.
    """

    draft: TableDraft
    endpoints: Endpoints
    policy: str = "weighted"
    groups: dict[str, NameGroup] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    defaults: list[str] = field(default_factory=list)
    depth: int = MAX_FALLBACKS
    _by_id: dict[str, ModelEntry] = field(default_factory=dict)
    _plain: set[str] = field(default_factory=set)
    _names: dict[str, str] = field(default_factory=dict)
    _inner: dict[str, str] = field(default_factory=dict)
    _used_names: set[str] = field(default_factory=set)
    _firsts: dict[str, DraftEndpoint] = field(default_factory=dict)
    _found: "dict[str, _Resolved]" = field(default_factory=dict)

    def add(self, entry: ModelEntry) -> bool:
        """Add an entry, and its deployment to the draft. Return whether it can be converted."""
        group = self.groups.setdefault(entry.group, NameGroup(entry.group))
        if not self._add_pattern(group, entry):
            return False
        group.entries.append(entry)
        self.endpoints.add(entry.endpoint, entry.group, entry.section)
        if entry.id:
            self._by_id.setdefault(entry.id, entry)
        return True

    def read_depth(self, router: ForeignSection) -> None:
        """Read the depth beyond which LiteLLM ignores the fallbacks of fallbacks."""
        self.depth = int(router.number("max_fallbacks") or MAX_FALLBACKS)

    def _add_pattern(self, group: NameGroup, entry: ModelEntry) -> bool:
        """Return whether an entry with a pattern can be converted. `x/*` becomes the vendor x."""
        endpoint = entry.endpoint
        if not group.is_pattern:
            if endpoint.model == ANY_MODEL:
                entry.section.report_section("leads one name to every model of a provider: not taken")
            return endpoint.model != ANY_MODEL
        vendor, _, rest = group.name.partition("/")
        if endpoint.model != ANY_MODEL or (group.name != ANY_MODEL and (rest != ANY_MODEL or ANY_MODEL in vendor)):
            entry.section.report_section("a pattern has a counterpart only as PROVIDER/* for every model: not taken")
            return False
        if group.name == ANY_MODEL:
            self._add_default(entry)
        else:
            endpoint.vendor = vendor
        return True

    def _add_default(self, entry: ModelEntry) -> None:
        surfaces = self.draft.section("server").block("surfaces")
        vendor = self.endpoints.vendor(entry.endpoint.vendor, entry.endpoint.profile)
        openai = surfaces.block("openai")
        if openai.entries.setdefault("default_vendor", vendor) == vendor:
            entry.endpoint.comments.append(f"Names without a vendor are {vendor}'s: server.surfaces.openai.")
        else:
            entry.section.report_section(
                'only one vendor can be the one of "*": clients write the vendor before the model'
            )

    def add_fallbacks(self, section: ForeignSection, key: str) -> None:
        """Read one of the lists of fallbacks. Its items map a group to groups."""
        for each in section.sections(key):
            for name in each.written():
                wanted = each.texts(name)
                group = self.groups.get(self.aliases.get(name, name))
                if name == ANY_MODEL:
                    self.defaults += self._known_names(each.apart(section.comments), name, wanted)
                elif group is None or group.is_pattern or not group.entries:
                    each.apart(section.comments).report_key(name, "names no model of model_list: not taken")
                else:
                    own = each.apart(group.comments)
                    found = self._known_names(own, name, wanted)
                    known = self._comparable(group, found)
                    if len(known) < len(found):
                        own.report_key(name, _UNLIKE)
                    kind = KINDS.get(key)
                    group.by_kind.setdefault(kind, []).extend(known) if kind else group.then.extend(known)

    def _comparable(self, group: NameGroup, names: Sequence[str]) -> list[str]:
        """Return the names whose models have the same task as the group's, with comparable vectors."""
        mine = _kind(self._first(group.name))
        return [name for name in names if _kind(self._first(name)) == mine]

    def _first(self, name: str) -> DraftEndpoint:
        """Return the first deployment of a name. All entries must have been added."""
        if name not in self._firsts:
            group = self._named(name)
            self._firsts[name] = self._by_id[name].endpoint if group is None else _ordered(group)[0].endpoint
        return self._firsts[name]

    def _known_names(self, section: ForeignSection, key: str, wanted: Sequence[str]) -> list[str]:
        """Return the known names of a list, at most as many as a route may have."""
        known = [name for name in dict.fromkeys(wanted) if self._is_known(name)]
        if len(known) < len(set(wanted)):
            section.report_key(key, "names a model that model_list does not have")
        if len(known) > MAX_TARGETS:
            section.report_key(key, f"is longer than a route: only the first {MAX_TARGETS} are taken")
        return known[:MAX_TARGETS]

    def _is_known(self, name: str) -> bool:
        group = self.groups.get(self.aliases.get(name, name))
        return name in self._by_id or (group is not None and bool(group.entries) and not group.is_pattern)

    def add_defaults(self, section: ForeignSection) -> None:
        """Read the default fallbacks, which apply if no other fallback does."""
        self.defaults += self._known_names(section, "default_fallbacks", section.texts("default_fallbacks"))

    def write(self) -> None:
        """Write every route."""
        named = [group for group in self.groups.values() if group.entries and not group.is_pattern]
        self.defaults = list(dict.fromkeys(self.defaults))[:MAX_TARGETS]
        chains: dict[str, list[str]] = {}
        kinds: dict[str, dict[str, list[str]]] = {}
        for group in named:
            defaults = self._comparable(group, self.defaults)
            if len(defaults) < len(self.defaults):
                group.entries[0].section.apart(group.comments).report_part(f"a default fallback {_UNLIKE}")
            chains[group.name] = [*self._followed(group.name, lambda each: each.then), *defaults]
            kinds[group.name] = {kind: self._followed(group.name, _of_kind(kind)) for kind in group.by_kind}
        for group in named:
            group.by_kind = kinds[group.name]
            group.then = [each for each in dict.fromkeys(chains[group.name]) if each != group.name]
        self._plain = {group.name for group in named if self._is_plain(group)}
        self._give_names([group for group in named if group.name not in self._plain])
        for group in named:
            self._write_group(group)
        for group in self.groups.values():
            found = self._resolve(group) if group.is_pattern and group.entries else None
            if found is not None and found.model is not None and found.policy != "priority":
                self.endpoints.balance(found.shares, found.policy)
        routes = self.draft.section("routes")
        for alias, name in self.aliases.items():
            if self._is_known(name):
                group, hides = self.groups[name], HIDDEN if alias in self.hidden else {}
                settings = {**self._space_settings(group), **hides}
                put_route(routes, route_name(alias), [(self._route_of(group), 1.0)], "priority", (), settings)

    def client_names(self) -> ClientNames:
        """Return the names that clients may use. The routes must have been written."""
        names: dict[str, str] = {}
        groups: dict[str, list[str]] = {}
        for group in self.groups.values():
            if not group.entries or group.name == ANY_MODEL:
                continue
            first = group.entries[0].endpoint
            names[group.name] = self.endpoints.key(first) if group.is_pattern else self._route_of(group)
            for each in dict.fromkeys(each for entry in group.entries for each in entry.access_groups):
                groups.setdefault(each, []).append(group.name)
        aliases = {alias: name for alias, name in self.aliases.items() if self._is_known(name)}
        return ClientNames(names | {alias: route_name(alias) for alias in aliases}, aliases, groups)

    def team_models(self) -> Mapping[str, Mapping[str, str]]:
        """Return, by team, the names that only this team has, with LiteLLM's own name of each model."""
        found: dict[str, dict[str, str]] = {}
        for group in self.groups.values():
            for entry in group.entries:
                if entry.team and entry.public_name:
                    found.setdefault(entry.team, {})[entry.public_name] = group.name
        return found

    def _followed(self, name: str, chain_of: Callable[[NameGroup], Sequence[str]]) -> list[str]:
        """Return the fallbacks of a group, including fallbacks of fallbacks, in LiteLLM's order."""

        def chain(current: str) -> list[str]:
            group = self._named(current)
            return [] if group is None else [self.aliases.get(each, each) for each in chain_of(group)]

        return fallback_order(name, chain, self.depth)

    def _space_settings(self, group: NameGroup) -> Mapping[str, DraftValue]:
        """Return the settings that the route of a group of embedding models needs. All its targets already have
        comparable vectors."""
        if self._first(group.name).task is not Task.EMBEDDINGS:
            return {}
        models = {*self._resolve(group).models}
        for name in group.then:
            other = self._named(name)
            models.update([self.endpoints.key(self._first(name))] if other is None else self._resolve(other).models)
        return {SAME_SPACE: True} if len(models) > 1 else {}

    def _give_names(self, groups: Sequence[NameGroup]) -> None:
        """Give each group the name of its route. This is the group's own name, if it is valid and not used."""
        for group in sorted(groups, key=lambda each: route_name(each.name) != each.name):
            name = unused(route_name(group.name), self._used_names, 200)
            self._names[group.name] = name
            self._used_names.add(name)
            if name != group.name:
                group.comments.append(f"{shown(group.name)} is not a valid name here: clients must use this one.")
        for group in groups:
            self._inner[group.name] = unused(f"{self._names[group.name]}.group", self._used_names, 200)
            self._used_names.add(self._inner[group.name])

    def _is_plain(self, group: NameGroup) -> bool:
        """Return whether the group's name is the new name of its only model. Then it needs no route."""
        if group.name != self.endpoints.key(group.entries[0].endpoint) or group.then or group.by_kind:
            return False
        shares = [Share(entry.endpoint) for entry in group.entries]
        ordered = any(entry.order is not None for entry in group.entries)
        return not ordered and self.endpoints.whole_model(group.name, shares) == group.name

    def _resolve(self, group: NameGroup) -> "_Resolved":
        """Return the resolved group without its fallbacks. It is computed once per group, when the names of all routes
        are known, because many fallbacks may lead to one large group."""
        if group.name not in self._found:
            self._found[group.name] = self._find(group)
        return self._found[group.name]

    def _find(self, group: NameGroup) -> "_Resolved":
        every = _ordered(group)
        space = _space(every[0].endpoint)
        entries = [entry for entry in every if _space(entry.endpoint) == space]
        for entry in every:
            if _space(entry.endpoint) != space:
                entry.section.apart(group.comments).report_part(OTHER_SPACE)
        ordered = any(entry.order is not None for entry in entries)
        # In LiteLLM the first entry decides whether there are weights. If there are, entries without a weight get 0.
        weighed = group.entries[0].weight is not None
        shares = [Share(entry.endpoint, (entry.weight or 0.0) if weighed else 1.0) for entry in entries]
        targets = self.endpoints.targets(group.name, shares, self._used_names.__contains__)
        model = self.endpoints.whole_model(group.name, shares)
        if model is None and len(targets) > MAX_TARGETS:
            reason = f"is beyond the {MAX_TARGETS} targets of a route, as are those after it: not taken"
            entries[MAX_TARGETS].section.apart(group.comments).report_part(reason)
        models = list(dict.fromkeys(self.endpoints.key(share.endpoint) for share in shares))[:2]
        policy = "priority" if ordered else self.policy
        return _Resolved(shares, targets[:MAX_TARGETS], policy, None if model in self._used_names else model, models)

    def _write_group(self, group: NameGroup) -> None:
        found = self._resolve(group)
        targets = found.targets
        if found.model is not None and found.policy != "priority":
            self.endpoints.balance(found.shares, found.policy)
            targets = [(found.model, 1.0)]
        if group.name in self._plain:
            self.draft.section("models").block(group.name).comments += group.comments
            return
        settings = self._space_settings(group)
        if settings:
            group.entries[0].section.apart(group.comments).remark(IS_ONE_SPACE)
        routes, name = self.draft.section("routes"), self._names[group.name]
        if not group.then:
            put_route(routes, name, targets, found.policy, group.comments, settings)
        else:
            if len(targets) > 1:
                put_route(routes, self._inner[group.name], targets, found.policy, (), {**settings, **HIDDEN})
                targets = [(self._inner[group.name], 1.0)]
            after = [(each, 1.0) for other in group.then for each in self._names_of(other)]
            reached = list(dict.fromkeys([*targets, *after]))[:MAX_TARGETS]
            put_route(routes, name, reached, "priority", group.comments, settings)
        self._write_kinds(group, name, targets)

    def _write_kinds(self, group: NameGroup, name: str, targets: Sequence[tuple[str, float]]) -> None:
        for kind, others in group.by_kind.items():
            if not others:
                continue
            block = self.draft.section("routes").entries[name]
            if not isinstance(block, Block):
                block = Block({"targets": [target for target, _ in targets]})
                self.draft.section("routes").put(name, block)
            models: list[DraftValue] = [*dict.fromkeys(each for other in others for each in self._models_of(other))]
            block.block("fallbacks").put(kind, models[:MAX_TARGETS])

    def _route_of(self, group: NameGroup) -> str:
        return self._names.get(group.name, group.name)

    def _named(self, name: str) -> NameGroup | None:
        group = self.groups.get(self.aliases.get(name, name))
        return group if group is not None and group.entries else None

    def _names_of(self, name: str) -> list[str]:
        """Return the targets of a fallback, which is a deployment or a group. The group's own fallbacks are not
        included."""
        group = self._named(name)
        if group is None:
            return [self.endpoints.pinned(self._by_id[name].endpoint)]
        found = self._resolve(group)
        if found.model is not None and found.policy != "priority":
            return [found.model]
        if len(found.targets) == 1:
            return [found.targets[0][0]]
        return [self._inner[group.name] if group.then else self._route_of(group)]

    def _models_of(self, name: str) -> list[str]:
        """Return the models and deployments of a fallback. Fallbacks for one reason cannot be routes."""
        group = self._named(name)
        if group is None:
            return [self.endpoints.pinned(self._by_id[name].endpoint)]
        return [target for target, _ in self._resolve(group).targets]


def _of_kind(kind: str) -> Callable[[NameGroup], Sequence[str]]:
    return lambda group: group.by_kind.get(kind, ())


def _ordered(group: NameGroup) -> list[ModelEntry]:
    return sorted(group.entries, key=lambda entry: entry.order if entry.order is not None else float("inf"))


def _space(endpoint: DraftEndpoint) -> str | None:
    return endpoint.space if endpoint.task is Task.EMBEDDINGS else None


def _kind(endpoint: DraftEndpoint) -> tuple[Task | None, str | None]:
    """Return the task and the vector space of a model, which must be equal if one model replaces another."""
    return endpoint.task, _space(endpoint)
