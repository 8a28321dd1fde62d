"""Registration of the helper modules whose assertions pytest must rewrite."""

from pathlib import Path

import pytest

_FILES = [path.stem for path in Path(__file__).parent.glob("*.py")]

pytest.register_assert_rewrite(*(f"tests.faults.{name}" for name in _FILES if name not in ("__init__", "conftest")))
