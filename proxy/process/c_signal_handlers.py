"""Signal handlers that the C library runs by itself, so that they work while native code holds the interpreter's lock.

Handlers of Python's `signal` module only set a flag, which the main thread reads when it returns to Python code. A
process with id 1 in a container ignores every signal without a handler, even if it sends the signal to itself.
"""

import ctypes
from typing import Final

_LIBC: Final = ctypes.CDLL(None)

Handler = ctypes.c_void_p
"""The address of a C function whose argument is the number of the signal."""


def exit_on(number: int) -> None:
    """End the process at once on a signal, with the number of the signal as its exit status."""
    _set("signal", number, ctypes.cast(_LIBC._exit, Handler).value)


def reset_after_first(number: int) -> bool:
    """Make the handler of a signal apply to one delivery only: the next delivery has the default action, which ends the
    process. Setting a handler again makes it permanent. Return False if the C library does not support it (it is a
    function of glibc)."""
    if not hasattr(_LIBC, "sysv_signal"):
        return False
    present = _set("sysv_signal", number, None)
    _set("sysv_signal", number, present)
    return True


def _set(function: str, number: int, handler: int | None) -> int | None:
    """Call a function with the signature of C's `signal`, and return the previous handler."""
    setting = ctypes.CFUNCTYPE(Handler, ctypes.c_int, Handler)((function, _LIBC))
    before: int | None = setting(number, handler)
    return before
