"""The facts of a plan follow from its targets."""

from collections.abc import Mapping

from providers.failure import FailureKind
from providers.target import Target
from proxy.routing.request_plan import Plan
from proxy.routing.route_settings import CacheRules
from tests.providers.dialects.openai.kit import target
from tests.support.looped import looped

OPENAI, CLAUDE = target("openai"), target("anthropic")
CACHE = CacheRules(60.0, 0.0, "team", shared=False, max_bytes=1000)


@looped(
    ("targets", "fallbacks", "cache", "features"),
    [
        ((OPENAI,), {}, None, ()),
        ((OPENAI, CLAUDE), {}, None, ("reasoning",)),
        ((OPENAI,), {FailureKind.CONTENT_FILTER: (CLAUDE,)}, None, ("reasoning",)),
        ((OPENAI,), {}, CACHE, ("response_cache",)),
        ((CLAUDE,), {}, CACHE, ("reasoning", "response_cache")),
    ],
)
def test_a_plan_has_the_features_that_its_targets_and_settings_need(
    targets: tuple[Target, ...],
    fallbacks: Mapping[FailureKind, tuple[Target, ...]],
    cache: CacheRules | None,
    features: tuple[str, ...],
) -> None:
    assert Plan("m", "m", targets, False, (), fallbacks, cache=cache).features == features


def test_every_target_is_one_of_the_targets_or_of_the_fallbacks() -> None:
    plan = Plan("m", "m", (OPENAI,), False, (), {FailureKind.SERVER: (CLAUDE, OPENAI)})
    assert [*plan.every_target] == [OPENAI, CLAUDE, OPENAI]


def test_a_route_names_the_model_that_served() -> None:
    assert Plan("m", "m", (OPENAI,), False, ()).served_name(OPENAI) == "m"
    assert Plan("m", "m", (OPENAI,), True, ()).served_name(OPENAI) == f"v/{OPENAI.model}"
