"""Creates the model for a name that only a `vendor/*` entry covers."""

from dataclasses import replace
from functools import lru_cache

from providers.target import Target
from proxy.routing.snapshot import Model


@lru_cache(maxsize=4096)
def expand(model: Model, name: str) -> Model:
    """Return a `vendor/*` entry as the model `name` (without the vendor).

    The result is cached, because dialects compile each target object once. The cache is bounded, because clients choose
    the names.
    """
    targets = tuple(_named(target, name) for target in model.targets)
    return replace(model, name=f"{model.targets[0].vendor}/{name}", targets=targets)


def _named(target: Target, name: str) -> Target:
    """Return a deployment of any model as a deployment of the model `name`, with its list price if it uses list
    prices."""
    price = target.price if target.list_price is None else target.list_price(name)
    return replace(target, model=name, upstream_model=name, price=price)
