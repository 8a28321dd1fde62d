"""The rules for second attempts for late requests, per model name, read from the sections of the configuration."""

from dataclasses import dataclass
from typing import Final

from config.sections.failover_section import HedgeSection, factor_of, seconds_of
from config.table.inheritance import model_inheritance
from config.table.table_schema import GatewayConfig
from config.units import duration, share

MIN_WAIT: Final = 0.3
"""The minimum seconds without content before a second attempt, whatever the learned percentile is."""


@dataclass(frozen=True, slots=True)
class HedgeRules:
    """The rules for second attempts. A second attempt begins if the first one has no content after `times` the 95th
    percentile of its deployment's time to the first content, or after `seconds` if `times` is `None`. A `share` of the
    requests may have one. At most `burst` unused second attempts accumulate. Cancelled calls may cost up to
    `usd_per_hour`."""

    times: float | None = 1.5
    seconds: float = MIN_WAIT
    share: float = 0.03
    burst: int = 20
    usd_per_hour: float = 1.0

    @property
    def after(self) -> str:
        """The delay before a second attempt, in the notation of the configuration."""
        return duration(self.seconds) if self.times is None else f"{self.times:g}x"

    @property
    def facts(self) -> dict[str, str | float]:
        """The rules as data, by their names in the configuration."""
        return {
            "after": self.after,
            "share": self.share,
            "burst": self.burst,
            "usd_per_hour": self.usd_per_hour,
        }

    @property
    def words(self) -> str:
        """The rules as text, such as `after 1.5x, share 3%, burst 20, 1 USD per hour`."""
        return f"after {self.after}, share {share(self.share)}, burst {self.burst}, {self.usd_per_hour:g} USD per hour"

    def wait(self, percentile: float | None) -> float | None:
        """Return the seconds without content after which a second attempt may begin, or `None` if none may begin.
        `percentile` is the 95th percentile of the first deployment, in seconds; it is `None` if too few requests were
        measured."""
        if self.times is None:
            return self.seconds
        if percentile is None:
            return None
        wait = self.times * percentile
        return wait if wait > MIN_WAIT else MIN_WAIT


def hedge_rules(section: HedgeSection | None) -> HedgeRules | None:
    """Return the rules of a section; `None` if there are no second attempts."""
    if section is None or section.mode == "off":
        return None
    times = factor_of(section.after)
    seconds = MIN_WAIT if times is not None else seconds_of(section.after)
    return HedgeRules(times, seconds, section.share, section.burst, section.usd_per_hour)


def model_hedge(config: GatewayConfig, name: str) -> HedgeRules | None:
    """Return the rules of an entry of `models`: its own rules, else its vendor's, else the defaults."""
    return hedge_rules(model_inheritance(config, name).first("hedge", lambda level: level.hedge))
