"""Requests with forms, with the attributes that `read_form` uses."""

from dataclasses import dataclass, field
from typing import cast

from multidict import CIMultiDict

from proxy.listener.client_request import PlainRequest


class _Pieces:
    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces

    async def readany(self) -> bytes:
        return self._pieces.pop(0) if self._pieces else b""


@dataclass(slots=True)
class _ArrivingForm:
    """The part of a request that `read_form` uses."""

    content: _Pieces
    client_max_size: int = 2**24
    content_length: int | None = None
    version: tuple[int, int] = (1, 1)
    headers: CIMultiDict[str] = field(default_factory=CIMultiDict)


def arriving(pieces: list[bytes]) -> PlainRequest:
    """Return a request whose body arrives in these chunks, none of which is empty."""
    return cast(PlainRequest, _ArrivingForm(_Pieces(list(pieces))))
