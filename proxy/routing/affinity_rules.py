"""The rules by which a model name sends the requests of a conversation to one deployment, from the configuration."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from config.sections.affinity_section import AffinitySection
from config.table.inheritance import model_inheritance
from config.table.table_schema import GatewayConfig
from proxy.routing.policies import WEIGHTED_POLICIES
from proxy.routing.session_affinity import MemberGroup
from proxy.routing.session_key import BUILT_IN_KEY, KeyNames, key_names

BYTES_PER_TOKEN: Final = 4
"""The bytes of a body that count as one token of its prompt."""

AFFINITY_BY_DEFAULT: Final = frozenset({"weighted", "round_robin", "least_busy"})
"""The policies that have affinity unless the operator sets otherwise."""

AFFINITY_IF_SET: Final = frozenset({"fastest"})
"""The policies that have affinity only if it is set at the name itself, because it works against their purpose."""


@dataclass(frozen=True, slots=True)
class AffinityRules:
    """Whether the requests of a conversation go to one deployment (`on`), and by which `key`.

    A deployment is skipped while it has more than `load` times its share of the requests in flight. For a body of fewer
    than `least` bytes only the policy decides. If `send` is true, vendors receive a digest of the conversation.
    """

    on: bool
    key: KeyNames = BUILT_IN_KEY
    load: float = 1.5
    least: int = 1024 * BYTES_PER_TOKEN
    send: bool = False

    @property
    def words(self) -> str:
        """The rules as text for people, such as `auto`, or `load: 2, send: true` if they differ from the built-in
        ones."""
        if not self.on:
            return "off"
        differing = [
            ("key", None if self.key is BUILT_IN_KEY else f"[{', '.join(self.key.names)}]"),
            ("load", None if self.load == BUILT_IN.load else f"{self.load:g}"),
            ("least", None if self.least == BUILT_IN.least else str(self.least // BYTES_PER_TOKEN)),
            ("send", "true" if self.send else None),
        ]
        return ", ".join(f"{name}: {value}" for name, value in differing if value is not None) or "auto"


BUILT_IN: Final = AffinityRules(on=True)
OFF: Final = AffinityRules(on=False)


def affinity_rules(section: AffinitySection | None) -> AffinityRules:
    """Return the rules of a section, or the built-in rules if there is no section."""
    if section is None:
        return BUILT_IN
    if section.mode == "off":
        return OFF
    key = BUILT_IN_KEY if section.key is None else key_names(section.key)
    return AffinityRules(True, key, section.load, section.least * BYTES_PER_TOKEN, section.send)


def model_affinity(config: GatewayConfig, name: str) -> AffinityRules:
    """Return the rules of an entry of `models`: its own, otherwise its vendor's, otherwise the defaults'."""
    return affinity_rules(model_inheritance(config, name).first("affinity", lambda level: level.affinity))


def under_policy(rules: AffinityRules, policy: str, *, written: bool) -> AffinityRules:
    """Return the rules that apply under a policy. `written` is true if the rules are set at the name itself."""
    return rules if policy in AFFINITY_BY_DEFAULT or (written and policy in AFFINITY_IF_SET) else OFF


def member_group(
    label: str, policy: str, names: Sequence[str], weights: Sequence[int], away: Iterable[int] = ()
) -> MemberGroup | None:
    """Return the group of a model's or route's members for conversations. Return `None` under the policy `priority`, or
    if at most one member gets requests."""
    if policy not in AFFINITY_BY_DEFAULT | AFFINITY_IF_SET or sum(1 for weight in weights if weight > 0) < 2:
        return None
    counted = weights if policy in WEIGHTED_POLICIES else [min(weight, 1) for weight in weights]
    return MemberGroup(label, tuple(names), tuple(counted), frozenset(away))
