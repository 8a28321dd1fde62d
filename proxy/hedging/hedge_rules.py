"""The rules by which a name makes second attempts for late requests, from the sections of the configuration."""

from dataclasses import dataclass
from typing import Final

from config.sections.failover_section import HedgeSection, factor_of, seconds_of
from config.table.inheritance import model_inheritance
from config.table.table_schema import GatewayConfig
from config.units import duration, share

LEAST_WAIT: Final = 0.3
"""Seconds without content that a learned percentile cannot fall below."""


@dataclass(frozen=True, slots=True)
class HedgeRules:
    """A second attempt begins when the first has no content after `times` the 95th percentile of its deployment's time
    to the first content, or after `seconds` if `times` is `None`. There is one for a `share` of the requests, of which
    `burst` add up, and cancelled calls cost up to `usd_per_hour` in an hour."""

    times: float | None = 1.5
    seconds: float = LEAST_WAIT
    share: float = 0.03
    burst: int = 20
    usd_per_hour: float = 1.0

    @property
    def after(self) -> str:
        """When a second attempt begins, as the configuration writes it."""
        return duration(self.seconds) if self.times is None else f"{self.times:g}x"

    @property
    def facts(self) -> dict[str, str | float]:
        """The rules for programs, by their names in the configuration."""
        return {
            "after": self.after,
            "share": self.share,
            "burst": self.burst,
            "usd_per_hour": self.usd_per_hour,
        }

    @property
    def words(self) -> str:
        """The rules for people, such as `after 1.5x, share 3%, burst 20, 1 USD per hour`."""
        return f"after {self.after}, share {share(self.share)}, burst {self.burst}, {self.usd_per_hour:g} USD per hour"

    def wait(self, percentile: float | None) -> float | None:
        """Return the seconds without content after which a second attempt may begin, by the 95th percentile of the
        first deployment (`None` if it is hardly known); `None` if no second attempt may begin."""
        if self.times is None:
            return self.seconds
        if percentile is None:
            return None
        wait = self.times * percentile
        return wait if wait > LEAST_WAIT else LEAST_WAIT


def hedge_rules(section: HedgeSection | None) -> HedgeRules | None:
    """Return the rules of a section; `None` if there are no second attempts."""
    if section is None or section.mode == "off":
        return None
    times = factor_of(section.after)
    seconds = LEAST_WAIT if times is not None else seconds_of(section.after)
    return HedgeRules(times, seconds, section.share, section.burst, section.usd_per_hour)


def model_hedge(config: GatewayConfig, name: str) -> HedgeRules | None:
    """Return the rules of an entry of `models`: its own, else its vendor's, else the defaults'."""
    return hedge_rules(model_inheritance(config, name).first("hedge", lambda level: level.hedge))
