"""The task of the agents: two tools, a question, and the shape of a structured response.

It imports only the standard library and pydantic, because it is loaded in the environments of the frameworks.
"""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, Field

Foreign: TypeAlias = Any  # an object of a framework, which is not installed where this file is type-checked
Order: TypeAlias = Mapping[str, Any]

KEY, EFFORT = "sk-test", "medium"
INSTRUCTIONS = "You compare the weather of cities by your tools."
TASK = "Compare the weather of Paris, Rome and Oslo."
QUESTION = "Plan a trip."


class Leg(BaseModel):
    """A stay in a city."""

    city: str = Field(min_length=1, max_length=40, pattern="^[A-Z]")
    nights: int = Field(ge=1, le=30)
    by: Literal["train", "plane"]
    note: str | None = None


class Hotel(BaseModel):
    """A hotel."""

    kind: Literal["hotel"]
    stars: int = Field(ge=1, le=5)


class Tent(BaseModel):
    """A tent."""

    kind: Literal["tent"]
    people: int = Field(gt=0)


class Trip(BaseModel):
    """A trip."""

    title: str
    legs: list[Leg] = Field(min_length=1, max_length=5)
    stay: Hotel | Tent
    budget: float = Field(gt=0, description="in euros")


CALLS: list[list[str]] = []
"""The calls of tools in order, each its name and arguments."""


def weather(city: str) -> str:
    """Return the weather of a city."""
    CALLS.append(["weather", city])
    return f"{city}: {len(city)} degrees"


def compare(first: str, second: str) -> str:
    """Compare two reports."""
    CALLS.append(["compare", first, second])
    return f"{first} | {second}"
