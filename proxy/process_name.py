"""Sets the name of a process, which `ps` and `top` show. Source: prctl(2), PR_SET_NAME; Linux only."""

import ctypes
from typing import Final

_SET_NAME: Final = 15
"""The number of the option in linux/prctl.h."""

_LIBC: Final = ctypes.CDLL(None)
_ZERO: Final = ctypes.c_ulong(0)


def name_process(name: str) -> None:
    """Set the name of the calling thread, at most 15 bytes; the main thread's name is the name of the process. Nothing
    changes if the system has no `prctl`."""
    if hasattr(_LIBC, "prctl"):
        _LIBC.prctl(_SET_NAME, ctypes.c_char_p(name.encode()), _ZERO, _ZERO, _ZERO)
