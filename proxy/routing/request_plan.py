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
    """A step in resolving a name, for `explain`: the rule that matched, and the name to which the rule led."""

    rule: str
    name: str


PlanFeature: TypeAlias = Literal["reasoning", "response_cache"]
"""The optional features that take part only in the requests of some plans, in the order of their hooks."""


@frozen
class Plan:
    """The targets of a request in the order of attempts, and `fallbacks`, the targets after a failure of a kind.

    `asked` is the client's model string, `label` is the configuration's name for it (so metrics have a bounded number
    of labels). `by_route` is true if a route chose the model, so that the response must name the model that answered.
    `dropping` are the targets that come after the others because they would drop fields, with these fields.
    `out_of_service` are the targets that were left out. `same_space` is true if the operator states that the vectors of
    all its models may be compared. `cache` are the rules of the name's response cache (`None`: no cache), `affinity`
    the rules of its conversations, and `hedge` the rules of second attempts (`None`: no second attempts).

    The following fields are derived from the targets: `features` are the optional features whose hooks take part in its
    requests for text, `total` is the longest total timeout in seconds. `keep_alive` and `keep_alive_json` are the most
    seconds without bytes to the client of a stream, and of a non-streaming request, until a deployment responds. They
    are the shortest ones of all its deployments, because any of them may be called; `None` if there is no limit.
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
        """The targets and all fallbacks. A target may occur several times."""
        return chain(self.targets, chain.from_iterable(self.fallbacks.values()))

    def served_name(self, target: Target) -> str:
        """Return the `model` of the response: the client's string if it names the model that answered, else
        `vendor/model_name`."""
        return f"{target.vendor}/{target.model}" if self.by_route else self.asked
