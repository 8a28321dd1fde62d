"""Makes the request types of generated SDKs as strict as a vendor. Only for a process of its own: the types are
changed in place.

Unchanged, a TypedDict ignores unknown fields, and pydantic checks the items of an `Iterable` only when it is iterated
(pydantic 2.14).
"""

import collections.abc
import types
from typing import Any, Union, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter
from typing_extensions import NoExtraItems, is_typeddict

Annotation = Any
"""The annotation of a field: a class, or any of typing's forms."""


def strict_adapter(
    body: Annotation,
) -> TypeAdapter[Any]:  # Any: types of SDKs that are not installed in the type-checking environment
    """Return a judge of a request's body that reports unknown fields at any depth, wrong items, and text in place of
    numbers."""
    return TypeAdapter(_tightened(body, set()))


def _tightened(annotation: Annotation, seen: set[int]) -> Annotation:
    if is_typeddict(annotation):
        _tighten(annotation, seen)
        return annotation
    arguments = tuple(_tightened(argument, seen) for argument in get_args(annotation))
    origin: Any = get_origin(annotation)
    if origin is collections.abc.Iterable or getattr(origin, "__name__", "") == "SequenceNotStr":
        return list[arguments[0]]  # type: ignore[valid-type]  # known at run time
    if origin in (Union, types.UnionType):
        return Union[arguments]  # noqa: UP007 - of members known at run time
    if arguments == get_args(annotation):
        return annotation
    return origin[arguments if len(arguments) > 1 else arguments[0]]


def _tighten(members: Annotation, seen: set[int]) -> None:
    if id(members) in seen:
        return
    seen.add(id(members))
    hints = get_type_hints(members, include_extras=True)
    members.__annotations__ = {name: _tightened(hint, seen) for name, hint in hints.items()}
    # Some types declare that they accept any field.
    members.__extra_items__ = NoExtraItems
    # Some unions contain open files, for uploads.
    members.__pydantic_config__ = {"extra": "forbid", "arbitrary_types_allowed": True}
