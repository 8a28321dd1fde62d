"""The hooks of each team, made of the features that the configuration has: decided once, and not by each request."""

from collections.abc import Callable, Mapping
from typing import Final, Literal, get_args

from proxy.hooks.request_hook import Hooks, RequestHook

Feature = Literal["tracing", "plugins", "prompt_texts", "payload_log"]
"""The features with hooks, in the order in which the hooks of a team are called."""

HookOf = Callable[[str], RequestHook | None]
"""Returns the hook of a team by its name; `None` if the team does not use the feature."""

_ORDER: Final[tuple[Feature, ...]] = get_args(Feature)


class TeamHooks(dict[str, Hooks]):
    """The hooks of requests by the names of teams; empty for every team until a feature is attached. The hooks of a
    team are made when they are first looked up. Each request looks them up; a method for it would cost twice as much.
    """

    __slots__ = ("_features",)

    def __init__(self) -> None:
        super().__init__()
        self._features: Mapping[Feature, HookOf] = {}

    def attach(self, feature: Feature, hook_of: HookOf | None) -> None:
        """Use a feature's hooks for requests that begin from now on, instead of its hooks before; `None` detaches the
        feature. Requests in flight keep the hooks with which they began."""
        others = {name: each for name, each in self._features.items() if name != feature}
        self._features = others if hook_of is None else {**others, feature: hook_of}
        self.clear()

    def __missing__(self, team: str) -> Hooks:
        made = [self._features[name](team) for name in _ORDER if name in self._features]
        hooks = self[team] = tuple([hook for hook in made if hook is not None])
        return hooks
