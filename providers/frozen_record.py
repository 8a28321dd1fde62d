"""The decorator of records that are made for every request or every chunk. They are frozen for type checkers and in
tests, without the cost of frozen objects in a running gateway.

A frozen dataclass sets each field by a call of `object.__setattr__`, which for a chunk costs more than everything else
in its creation. Type checkers treat every record as frozen (`dataclass_transform`), and the tests run with records that
really are frozen (`freeze_records`), so an assignment to a record is found before a release. Values of the
configuration, which are made once, are frozen dataclasses.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar, dataclass_transform, overload

T = TypeVar("T")


class _Switch:
    """Whether records are really frozen from now on."""

    frozen = False


_SWITCH: Final = _Switch()


def freeze_records() -> None:
    """Make records really frozen: records that are defined from now on raise FrozenInstanceError at an assignment."""
    _SWITCH.frozen = True


@overload
def frozen(cls: type[T], /) -> type[T]: ...


@overload
def frozen(*, eq: bool = True) -> Callable[[type[T]], type[T]]: ...


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T] | None = None, /, *, eq: bool = True) -> type[T] | Callable[[type[T]], type[T]]:
    """Make a class a dataclass with slots whose instances must not be changed. They are compared and hashed by their
    fields, or with `eq=False` by identity."""

    def made(cls: type[T]) -> type[T]:
        if _SWITCH.frozen:
            return dataclass(frozen=True, slots=True, eq=eq)(cls)
        # Instances are never changed, so the hash is as safe as the hash of a frozen dataclass.
        return dataclass(slots=True, eq=eq, unsafe_hash=eq)(cls)

    return made if cls is None else made(cls)
