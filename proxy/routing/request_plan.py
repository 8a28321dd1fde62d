"""The plan of a request: the targets of its name, and the facts that follow from them."""

from collections.abc import Iterator, Mapping
from dataclasses import field
from itertools import chain
from typing import Literal, TypeAlias

from providers.failure import FailureKind
from providers.frozen_record import frozen
from providers.models.reasoning_back import wants_reasoning_back
from providers.target import Target
from proxy.hedging.hedge_rules import HedgeRules
from proxy.routing.affinity_rules import BUILT_IN, AffinityRules
from proxy.routing.route_settings import CacheRules


@frozen
class Step:
    """A step in resolving a name, for `explain`: the rule that matched and the name it gave."""

    rule: str
    name: str


PlanFeature: TypeAlias = Literal["reasoning", "response_cache"]
"""Optional features that have a part in the requests of some plans alone, in the order of their hooks."""


@frozen
class Plan:
    """The targets of a request, best first, and `fallbacks` after failures of a kind.

    `asked` is the client's model string, `label` the table's name for it (bounded, for metrics), `by_route` whether a
    route chose the model, so that the answer must name the model that served. `dropping` are the targets that stand
    behind others because they would drop these fields, `out_of_service` those that were left out. `same_space` is the
    operator's word that the vectors of all its models may be compared. `cache` are the rules of the name's answer cache
    (None = none), `affinity` those of its conversations, `hedge` those of second attempts (`None`: no second attempts).

    These follow from its targets: `features` are the optional features whose hooks its requests for text have, `total`
    is the longest total timeout in seconds. `keep_alive` and `keep_alive_json` are the longest silence in seconds
    towards the client of a stream and of a non-streaming request until a deployment responds, the shortest of all its
    deployments' since any of them may be called; `None` if there is no limit.
    """

    asked: str
    label: str
    targets: tuple[Target, ...]
    by_route: bool
    steps: tuple[Step, ...]
    fallbacks: Mapping[FailureKind, tuple[Target, ...]] = field(default_factory=dict)
    dropping: Mapping[Target, tuple[str, ...]] = field(default_factory=dict)
    same_space: bool = False
    cache: CacheRules | None = None
    affinity: AffinityRules = BUILT_IN
    hedge: HedgeRules | None = None
    out_of_service: tuple[Target, ...] = ()
    features: tuple[PlanFeature, ...] = field(init=False)
    total: float = field(init=False)
    keep_alive: float | None = field(init=False)
    keep_alive_json: float | None = field(init=False)

    def __post_init__(self) -> None:
        every = [*self.every_target] if self.fallbacks else self.targets
        features: tuple[PlanFeature, ...] = () if self.cache is None else ("response_cache",)
        if any([wants_reasoning_back(target) for target in every]):
            features = ("reasoning", *features)
        silences = [(each, target.timeouts) for target in every if (each := target.timeouts.keep_alive) is not None]
        of_json = [each for each, timeouts in silences if timeouts.keep_alive_json]
        fact = object.__setattr__
        fact(self, "features", features)
        fact(self, "total", max([target.timeouts.total for target in self.targets], default=0.0))
        fact(self, "keep_alive", min([each for each, _ in silences], default=None))
        fact(self, "keep_alive_json", min(of_json, default=None))

    @property
    def every_target(self) -> Iterator[Target]:
        """The targets and all fallbacks, in which one may occur again."""
        return chain(self.targets, chain.from_iterable(self.fallbacks.values()))

    def served_name(self, target: Target) -> str:
        """Return the answer's `model`: the client's string if it names that model, else `vendor/model_name`."""
        return f"{target.vendor}/{target.model}" if self.by_route else self.asked
