"""Resolve the settings of a deployment: its own, then its model's, its vendor's and the `defaults`, key by key."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar

from pydantic import SecretStr

from config.problem import Path
from config.sections.section import Declaration, Section, built_in_section, settings_of
from config.table.table_schema import (
    DeploymentSection,
    DeploymentSettings,
    GatewayConfig,
    ModelSection,
    ModelSettings,
)

IMPLICIT_DEPLOYMENT: Final = "default"
"""The name of the only deployment of a model that lists no deployments."""

_T = TypeVar("_T")
_S = TypeVar("_S", bound=Section)
_Levels: TypeAlias = Sequence[tuple[Path, Section]]


class Settings(ModelSettings, defer_build=True):
    """The resolved settings of one deployment: for each setting the value that applies, or `None`.

    A field of a section, such as `timeouts`, counts as set if a level writes it. `origins` maps a key (`base_url`,
    `timeouts.connect`, `headers.X-Team`) to the path at which its value is written, which `Loaded.locate` converts to a
    position. A built-in value has no entry. At most one of `api_key` and `credentials` is set. `ca_file` is the name as
    written; `Loaded.authorities` holds the content of the file, by the origin of `ca_file`.
    """

    profile: str
    weight: int
    origins: Mapping[str, Path]


_BUILT_IN: Final = Settings.model_construct(set(), **dict(built_in_section(ModelSettings)))


@dataclass(slots=True)
class Inheritance:
    """The levels from which a deployment inherits, the deepest first, and the origin of each value read so far."""

    levels: list[tuple[Path, DeploymentSettings]]
    origins: dict[str, Path] = field(default_factory=dict)

    def first(self, key: str, read: Callable[[DeploymentSettings], _T | None]) -> _T | None:
        """Return the value of the deepest level that has one, and record its origin."""
        for path, level in self.levels:
            value = read(level)
            if value is not None:
                self.origins[key] = (*path, *key.split("."))
                return value
        return None

    def resolve(self, built_in: _S) -> _S:
        """Return the settings that apply by the rules of `setting`. A setting that no level writes has the value of
        `built_in`. The fields that count as set are the ones that a level writes."""
        return _resolved(self.levels, built_in, self.origins, "")


def _resolved(levels: _Levels, built_in: _S, origins: dict[str, Path], above: str) -> _S:
    written: dict[str, list[tuple[Path, Any]]] = {}
    for path, level in levels:
        for name in level.model_fields_set:
            written.setdefault(name, []).append(((*path, name), getattr(level, name)))
    found: dict[str, object] = {}
    for name, declared in settings_of(type(built_in)).items():
        if (values := written.get(name)) is None:
            continue
        key, default = above + name, getattr(built_in, name)
        if isinstance(default, Section):
            found[name] = _resolved(values, default, origins, f"{key}.")
        elif isinstance(default, dict):
            found[name] = _merged(values, origins, key)
        elif (deepest := _deepest(levels, name, declared)) is not None:
            origins[key], value = deepest
            found[name] = (value or None) if isinstance(value, str | SecretStr) else value
            for replaced in (found, origins) if declared.instead_of else ():
                replaced.pop(declared.instead_of, None)
    return built_in.model_copy(update=found)


def _merged(values: Sequence[tuple[Path, Mapping[str, object]]], origins: dict[str, Path], key: str) -> object:
    """Return the entries of all levels. If names differ only in case, return only the entry of the deepest level."""
    found: dict[str, tuple[str, object]] = {}
    for path, entries in reversed(values):
        for name, value in entries.items():
            found[name.lower()] = (name, value)
            origins[f"{key}.{name}"] = (*path, name)
    return MappingProxyType(dict(found.values()))


def _deepest(levels: _Levels, name: str, declared: Declaration) -> tuple[Path, object] | None:
    for path, level in levels:
        value = getattr(level, name, None)  # not every level has every setting
        if value is not None:
            return (*path, name), value
        if declared.instead_of and getattr(level, declared.instead_of) is not None:
            return None
    return None


def vendor_inheritance(config: GatewayConfig, vendor: str) -> Inheritance:
    """Return the levels above the models of a vendor."""
    return Inheritance([(("vendors", vendor), config.vendors[vendor]), (("defaults",), config.defaults)])


def model_inheritance(config: GatewayConfig, name: str) -> Inheritance:
    """Return the levels of an entry of `models`, for settings that its deployments have in common."""
    above = vendor_inheritance(config, name.partition("/")[0])
    return Inheritance([(("models", name), config.models[name]), *above.levels])


def deployment_named(model: ModelSection, deployment: str) -> DeploymentSection:
    """Return a model's deployment by name, including the implicit one. Raises KeyError for other names."""
    if not model.deployments and deployment == IMPLICIT_DEPLOYMENT:
        return DeploymentSection()
    return model.deployments[deployment]


def deployment_inheritance(config: GatewayConfig, vendor: str, model: str, deployment: str) -> Inheritance:
    """Return the levels of one deployment. The names are keys of the configuration."""
    own, path = deployment_named(config.models[model], deployment), ("models", model, "deployments", deployment)
    above = [(("models", model), config.models[model]), *vendor_inheritance(config, vendor).levels]
    return Inheritance([(path, own), *above])


def effective_settings(config: GatewayConfig, vendor: str, model: str, deployment: str) -> Settings:
    """Resolve the settings of one deployment. Raises KeyError for names that the configuration does not have.

    `model` is a key of the configuration, `vendor/model` or `vendor/*`. `deployment` may be the implicit one.
    """
    level = deployment_inheritance(config, vendor, model, deployment)
    own = {
        "profile": config.vendors[vendor].profile or vendor,
        "weight": deployment_named(config.models[model], deployment).weight,
        "origins": MappingProxyType(level.origins),
    }
    return level.resolve(_BUILT_IN).model_copy(update=own)
