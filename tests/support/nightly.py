"""Whether this run is the nightly one. A test tries fewer cases of one kind with every change."""

from dataclasses import dataclass
from typing import Final


@dataclass(slots=True)
class Run:
    """What the run is for. It is set before the tests are imported (`tests/conftest.py`)."""

    nightly: bool = False


run: Final = Run()
