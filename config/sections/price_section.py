"""The `price` of a deployment: list prices, the operator's own prices, or none."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, model_validator

from config.sections.section import OrWord, Section, WordSection
from config.sections.value_types import Dollars, OptionalDollars, ServiceTier, TokenCount, refuse


class RatesSection(Section):
    """The rates of a price, in USD per million tokens; for searches and requests, in USD per thousand."""

    input: OptionalDollars = Field(
        default=None, description="Tokens of the prompt. Built in: as in the section around it."
    )
    output: OptionalDollars = Field(
        default=None, description="Generated tokens, including reasoning. Built in: unknown."
    )
    cached_input: OptionalDollars = Field(
        default=None, description="Tokens of the prompt that the vendor read from its cache. Built in: as input."
    )
    cache_write: OptionalDollars = Field(
        default=None,
        description="Tokens of the prompt that the vendor wrote to its cache, if it reports them, as Anthropic does. "
        "Built in: as input.",
    )
    cache_write_1h: OptionalDollars = Field(
        default=None, description="Tokens among them that stay in the cache for an hour. Built in: as cache_write."
    )
    input_audio: OptionalDollars = Field(default=None, description="Tokens of audio in the prompt. Built in: as input.")
    output_audio: OptionalDollars = Field(default=None, description="Generated tokens of audio. Built in: as output.")
    cached_audio: OptionalDollars = Field(
        default=None, description="Tokens of audio that the vendor read from its cache. Built in: as cached_input."
    )
    input_image: OptionalDollars = Field(
        default=None, description="Tokens of images in the prompt. Built in: as input."
    )
    output_image: OptionalDollars = Field(default=None, description="Generated tokens of images. Built in: as output.")
    cached_image: OptionalDollars = Field(
        default=None, description="Tokens of images that the vendor read from its cache. Built in: as cached_input."
    )
    input_video: OptionalDollars = Field(default=None, description="Tokens of video in the prompt. Built in: as input.")
    output_video: OptionalDollars = Field(default=None, description="Generated tokens of video. Built in: as output.")
    web_search: OptionalDollars = Field(
        default=None,
        description="A thousand searches of the web that the vendor makes. Built in: unknown. Such requests count as "
        "requests without a price; the cost of their tokens still counts.",
    )
    request: OptionalDollars = Field(default=None, description="A thousand calls. Built in: 0.")

    def rates(self) -> Iterator[tuple[str, float]]:
        """Yield the rates that are written, by their keys."""
        for key in self.model_fields_set:
            if isinstance(value := getattr(self, key), float) and key != "above":
                yield key, value


class LongContextSection(RatesSection):
    """The rates of requests with a long prompt, for the whole request. A rate that is not written is the rate of short
    prompts."""

    above: TokenCount = Field(description="Prompts with more tokens than this, such as 200k.")


class TierSection(RatesSection):
    """The rates of a service tier. A rate that is not written is the rate of the standard tier, except for long
    contexts."""

    long_context: list[LongContextSection] = Field(
        default=[], description="Rates of requests with a long prompt. None written: as of short prompts."
    )


class PriceSection(RatesSection, WordSection):
    """The cost of a deployment, in USD per million tokens: `auto` takes the vendor's list price from the data that
    ships with the gateway, `none` has no price, and a mapping has your own prices. It is inherited as a whole."""

    words = ("auto", "none")
    short_form = "auto, none"
    long_form = "a mapping such as {input: 0.15, output: 0.6}"

    input: Dollars = Field(description="Tokens of the prompt.")
    long_context: list[LongContextSection] = Field(
        default=[], description="Rates of requests with a long prompt, a mapping for each length."
    )
    service_tiers: dict[ServiceTier, TierSection] = Field(
        default={},
        description="Rates of service tiers by the name that responses report, such as flex, priority or batch. Other "
        "tiers cost as the standard tier.",
    )

    @model_validator(mode="after")
    def _distinct_lengths(self) -> "PriceSection":
        for listed in (self.long_context, *(tier.long_context for tier in self.service_tiers.values())):
            lengths = [each.above for each in listed]
            if len(set(lengths)) < len(lengths):
                raise refuse("two entries of long_context are for the same length")
        return self


PriceSetting = Annotated[PriceSection | Literal["auto", "none"], OrWord(PriceSection)]
