"""The figures that need the whole gateway as a process under load, or a tool that runs for a while.

Never how one is found: that is beside it, in the modules named `load_`, `soak` and `fuzz`.
"""

from tests.trust.figure import Figure

LOAD_FIGURES: tuple[Figure, ...] = ()
"""In the order of their numbers."""
