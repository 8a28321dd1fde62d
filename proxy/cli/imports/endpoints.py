"""Distribute another gateway's deployments over vendors, models and deployments of a configuration.

A vendor has one profile. Settings that all its deployments share are written at the vendor. Settings that all
deployments of a model share are written at the model, and the rest at the deployment. Two deployments with equal
settings become one.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from config.problem import ConfigError, Problem
from providers.profiles.load_profiles import load_profiles
from providers.unified_request import Task
from proxy.cli.imports.foreign_section import ForeignSection
from proxy.cli.imports.table_draft import Block, DraftValue, TableDraft
from proxy.cli.imports.table_values import fits, slashed_name, unused, variable, weights, word

MAX_ENDPOINTS: Final = 5_000
MAX_TARGETS: Final = 64
"""The maximum number of targets of one route. Further ones are omitted, so that nested lists do not multiply."""

ANY_MODEL: Final = "*"

SAME_SPACE: Final = "same_space"
IS_ONE_SPACE: Final = "its models have one name, so their vectors are taken as comparable: check `same_space: true`"
OTHER_SPACE: Final = (
    "its vectors may not be comparable with the first's: not taken; if they are, add it and write `same_space: true`"
)

_TASKS: Final = (
    (re.compile(r"(?i)rerank"), Task.RERANK),
    (re.compile(r"(?i)embed|\bbge-|\be5-|\bgte-|minilm"), Task.EMBEDDINGS),
    (re.compile(r"(?i)moderation"), Task.MODERATIONS),
    (re.compile(r"(?i)whisper|transcribe"), Task.TRANSCRIPTIONS),
    (re.compile(r"(?i)\btts\b"), Task.SPEECH),
    (re.compile(r"(?i)dall-e|gpt-image|\bimagen-|stable-diffusion|\bflux"), Task.IMAGES),
)
"""Patterns that occur in the names of models for tasks other than text, each with the task."""

_PER_DEPLOYMENT: Final = frozenset({"limits"})
"""Settings that apply per deployment: two deployments with equal limits may do twice as much as one."""

_PLACEHOLDER: Final = re.compile(r"\{([a-z_]+)\}")

_OF_VENDORS: Final = (
    *("api_key", "credentials", "base_url", "allow_private", "url_params", "api_version", "headers"),
    *("timeouts", "retries"),
)
"""Settings that may be written at a vendor: the settings of the account, of the address, and of every call to the
vendor."""


@dataclass(slots=True)
class DraftEndpoint:
    """One deployment. `vendor`, `model` and `name` are its wanted names; `settings` are keys of the config file.
    `model` is ANY_MODEL for every model of the vendor. `task` is the model's task; `None`: it generates text. `space`
    is the embedding model, whose vectors are only comparable with each other."""

    vendor: str
    profile: str
    model: str
    name: str = "default"
    settings: dict[str, DraftValue] = field(default_factory=dict)
    comments: list[str] = field(default_factory=list)
    task: Task | None = None
    space: str = ""


def task_of(model: str, profile: str) -> Task | None:
    """Return the task of a model with this name at a vendor; `None` if it generates text."""
    found = next((task for words, task in _TASKS if words.search(model)), None)
    known = load_profiles()[profile]
    return found or (Task.EMBEDDINGS if Task.EMBEDDINGS in known.tasks and not known.wires else None)


def space_of(model: str) -> str:
    """Return the maker's name of a model, without prefixes. Vectors of models with equal names are comparable."""
    return model.rpartition("/")[2].lower()


@dataclass(slots=True)
class Share:
    """A deployment within a group, with its weight."""

    endpoint: DraftEndpoint
    weight: float = 1.0


@dataclass(slots=True)
class _Model:
    """The deployments of one model by name, and the groups that use them."""

    key: str
    deployments: dict[str, DraftEndpoint] = field(default_factory=dict)
    groups: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Endpoints:
    """Collects deployments, names them and writes them into the draft."""

    draft: TableDraft
    _vendors: dict[str, str] = field(default_factory=dict)
    _models: dict[str, _Model] = field(default_factory=dict)
    _places: dict[int, tuple[_Model, str]] = field(default_factory=dict)
    _known: dict[tuple[str, str], DraftEndpoint] = field(default_factory=dict)
    _all: list[DraftEndpoint] = field(default_factory=list)

    def add(self, endpoint: DraftEndpoint, group: str, section: ForeignSection) -> None:
        """Add a deployment that a group uses and a section describes. Raises ConfigError if there are too many."""
        if len(self._all) >= MAX_ENDPOINTS:
            reason = f"more than {MAX_ENDPOINTS} deployments: import them in parts"
            raise ConfigError([Problem.at(section.node.at, section.path, reason)])
        self._all.append(endpoint)
        vendor = self.vendor(endpoint.vendor, endpoint.profile)
        plain = slashed_name(endpoint.model, "model") if endpoint.model != ANY_MODEL else ANY_MODEL
        self._name_upstream(endpoint, plain, section)
        self._complete_address(endpoint, section)
        key = f"{vendor}/{plain}"
        # The repr of plain settings: equal settings have an equal repr.
        same = self._known.setdefault((key, repr(endpoint.settings)), endpoint)
        model = self._models.setdefault(key, _Model(key))
        model.groups.add(group)
        if same is not endpoint:
            same.comments += [each for each in endpoint.comments[:20] if each not in same.comments[:20]]
            self._places[id(endpoint)] = self._places[id(same)]
            return
        name = unused(word(endpoint.name, "default"), model.deployments)
        model.deployments[name] = endpoint
        self._places[id(endpoint)] = (model, name)

    def _name_upstream(self, endpoint: DraftEndpoint, plain: str, section: ForeignSection) -> None:
        if plain != endpoint.model:
            endpoint.settings.setdefault("upstream_model", endpoint.model)
        upstream = endpoint.settings.get("upstream_model")
        if upstream is not None and (plain == ANY_MODEL or not fits("text", upstream)):
            del endpoint.settings["upstream_model"]
            section.report_part("its name at the vendor is not valid in a config file: not taken")

    def _complete_address(self, endpoint: DraftEndpoint, section: ForeignSection) -> None:
        """Complete the address of a deployment if the file has none: the profile's own address, or a reference to a
        variable."""
        own = load_profiles()[endpoint.profile].base_url
        if "base_url" in endpoint.settings:
            return
        if own is None:
            missing = self.draft.refer(variable(endpoint.vendor, "base_url"), "https://sample.example.com")
            endpoint.settings["base_url"] = missing
            section.remark(f"has no address to call: put one into the environment as {missing.text[2:-1]}")
            return
        if "localhost" in own:
            endpoint.settings["allow_private"] = True
        written = endpoint.settings.get("url_params")
        known = written.entries if isinstance(written, Block) else {}
        missing_params = {
            name: self.draft.refer(variable(endpoint.vendor, name), "sample")
            for name in _PLACEHOLDER.findall(own)
            if name not in known
        }
        if missing_params:
            endpoint.settings["url_params"] = Block({**known, **missing_params})

    def vendor(self, name: str, profile: str) -> str:
        """Return the configuration's name for a vendor. It is the wanted name, or another name if the wanted name has
        another profile."""
        clean = word(name, profile)
        if self._vendors.get(clean, profile) != profile:
            clean = f"{clean[:40]}-{profile}"
        self._vendors[clean] = profile
        return clean

    def space_settings(self, endpoints: Iterable[DraftEndpoint]) -> Mapping[str, DraftValue]:
        """Return the settings that a route over several embedding models with the same name needs."""
        known = list(endpoints)
        names = {(endpoint.task, endpoint.space) for endpoint in known}
        several = len({self.key(endpoint) for endpoint in known}) > 1
        one = len(names) == 1 and all(task is Task.EMBEDDINGS for task, _ in names)
        return {SAME_SPACE: True} if several and one else {}

    def key(self, endpoint: DraftEndpoint) -> str:
        """Return the configuration's name of the deployment's model."""
        return self._places[id(endpoint)][0].key

    def pinned(self, endpoint: DraftEndpoint) -> str:
        """Return the configuration's name of the deployment."""
        model, name = self._places[id(endpoint)]
        return f"{model.key}/{name if len(model.deployments) > 1 else 'default'}"

    def targets(self, group: str, shares: Sequence[Share], taken: Callable[[str], bool]) -> list[tuple[str, float]]:
        """Return the names of the targets of a group's route, each with its weight. All deployments must have been
        added.

        `taken` returns whether a name belongs to a route. Such a name would lead to the route instead of the model.
        """
        found: dict[str, float] = {}
        for share in shares:
            model, _ = self._places[id(share.endpoint)]
            single = len(model.deployments) == 1 and not taken(model.key)
            name = model.key if single else self.pinned(share.endpoint)
            found[name] = found.get(name, 0.0) + share.weight
        return list(found.items())

    def whole_model(self, group: str, shares: Sequence[Share]) -> str | None:
        """Return the model with which a group is identical: the group has all the model's deployments, and no other
        group has any of them. Return `None` if there is no such model."""
        models = {id(model): model for model, _ in (self._places[id(share.endpoint)] for share in shares)}
        if len(models) != 1:
            return None
        (model,) = models.values()
        used = {name for _, name in (self._places[id(share.endpoint)] for share in shares)}
        return model.key if model.groups == {group} and used == model.deployments.keys() else None

    def balance(self, shares: Sequence[Share], policy: str) -> None:
        """Write the policy and the deployments' weights at the model of a group that is identical with it."""
        model, _ = self._places[id(shares[0].endpoint)]
        if len(model.deployments) < 2:
            return
        block = self.draft.section("models").block(model.key)
        block.entries = {"policy": policy, **block.entries}
        parts: dict[str, float] = {}
        for share in shares:
            name = self._places[id(share.endpoint)][1]
            parts[name] = parts.get(name, 0.0) + share.weight
        whole = weights(list(parts.values()))
        if policy in ("weighted", "least_busy") and len(set(whole)) > 1:
            for name, weight in zip(parts, whole, strict=True):
                block.block("deployments").block(name).put("weight", weight)

    def write(self) -> None:
        """Write the vendors and models."""
        by_vendor: dict[str, list[_Model]] = {}
        for model in self._models.values():
            by_vendor.setdefault(model.key.partition("/")[0], []).append(model)
        for vendor, profile in self._vendors.items():
            models = by_vendor.get(vendor, [])
            block = self.draft.section("vendors").block(vendor)
            if profile != vendor:
                block.put("profile", profile)
            every = [each for model in models for each in model.deployments.values()]
            _hoist(every, block, _OF_VENDORS)
            for model in models:
                self._write_model(model)

    def _write_model(self, model: _Model) -> None:
        block = self.draft.section("models").block(model.key)
        deployments = list(model.deployments.items())
        if len(deployments) == 1:
            _, only = deployments[0]
            block.entries.update(only.settings)
            block.comments += only.comments
            return
        _hoist([each for _, each in deployments], block, None)
        for name, each in deployments:
            inner = block.block("deployments").block(name)
            inner.entries.update(each.settings)
            inner.comments += each.comments


def _hoist(endpoints: Sequence[DraftEndpoint], block: Block, only: Sequence[str] | None) -> None:
    """Move the settings that all deployments share into a block above them."""
    if not endpoints:
        return
    for key in tuple(endpoints[0].settings) if only is None else only:
        if key in _PER_DEPLOYMENT:
            continue
        first = endpoints[0].settings.get(key)
        if first is not None and all(each.settings.get(key) == first for each in endpoints):
            block.put(key, first)
            for each in endpoints:
                del each.settings[key]


def in_weight(targets: Sequence[tuple[str, float]], policy: str) -> Iterator[DraftValue]:
    """Yield the targets of a route in the form of the config file, each with its weight if the policy has weights."""
    whole = weights([weight for _, weight in targets])
    for (name, _), weight in zip(targets, whole, strict=True):
        weighed = policy in ("weighted", "least_busy") and len(set(whole)) > 1
        yield Block({"target": name, "weight": weight}) if weighed else name


def put_route(
    routes: Block,
    name: str,
    targets: Sequence[tuple[str, float]],
    policy: str,
    comments: Sequence[str] = (),
    settings: Mapping[str, DraftValue] = MappingProxyType({}),
) -> None:
    """Write a route. If the route has one target and no settings, only the target's name is written."""
    if len(targets) == 1 and not comments and not settings:
        routes.put(name, targets[0][0])
        return
    block = routes.block(name)
    block.comments += comments
    if len(targets) > 1 and policy != "priority":
        block.put("policy", policy)
    block.put("targets", list(in_weight(targets, policy)))
    block.entries.update(settings)
