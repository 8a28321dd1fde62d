"""The hooks of requests for the features of the configuration. Most hooks are chosen once for each team and API. Other
hooks are chosen for each request, if its plan uses the feature."""

from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeAlias, get_args

from providers.unified_request import UnifiedRequest
from proxy.dispatch.exchange import Exchange
from proxy.hooks.request_hook import Hooks, RequestHook
from proxy.routing.request_plan import PlanFeature

Feature = Literal["tracing", "plugins", "prompt_texts", "payload_log", "stored_responses"]
"""The features with hooks for all requests, in the order in which these hooks are called."""

HookOf = Callable[[str, str], RequestHook | None]
"""Returns the hook of a team, by its name, for requests of a surface, by its name; `None` if the feature has no part in
them."""

PlanHookOf: TypeAlias = Callable[[Exchange[UnifiedRequest], Mapping[str, str]], RequestHook | None]
"""Returns the hook of one exchange of text with the headers of its client; `None` if the feature has no part in it."""

_ORDER: Final[tuple[Feature, ...]] = get_args(Feature)


class TeamHooks(dict[tuple[str, str], Hooks]):
    """The hooks of requests by the names of team and surface; empty until a feature is attached. The hooks of a team
    and surface are created at the first look-up. This is a dict because each request looks its hooks up, and a method
    would take twice as long."""

    __slots__ = ("_features", "_of_plans")

    def __init__(self) -> None:
        super().__init__()
        self._features: Mapping[Feature, HookOf] = {}
        self._of_plans: dict[PlanFeature, PlanHookOf] = {}

    def attach(self, feature: Feature, hook_of: HookOf | None) -> None:
        """Use `hook_of` for a feature in requests that begin from now on, instead of its previous hooks; `None`
        detaches the feature. Requests in flight keep the hooks with which they began."""
        others = {name: each for name, each in self._features.items() if name != feature}
        self._features = others if hook_of is None else {**others, feature: hook_of}
        self.clear()

    def attach_to_plans(self, feature: PlanFeature, hook_of: PlanHookOf) -> None:
        """Use a feature's hook for each request that is planned from now on, if its plan has the feature."""
        self._of_plans[feature] = hook_of

    def of_plan(self, exchange: Exchange[UnifiedRequest], headers: Mapping[str, str]) -> Hooks:
        """Return the hooks of one exchange by the features of its plan, which are called after its team's hooks."""
        attached = [self._of_plans[name] for name in exchange.plan.features if name in self._of_plans]
        made = [hook_of(exchange, headers) for hook_of in attached]
        return tuple([hook for hook in made if hook is not None])

    def __missing__(self, names: tuple[str, str]) -> Hooks:
        made = [self._features[name](*names) for name in _ORDER if name in self._features]
        hooks = self[names] = tuple([hook for hook in made if hook is not None])
        return hooks
