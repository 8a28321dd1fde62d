"""A machine without any vendor's credentials, for tests to put some there."""

import os
from pathlib import Path

import pytest

PREFIXES = ("AWS_", "AZURE_", "CLOUDSDK_", "GCE_", "GOOGLE_", "IDENTITY_", "IMDS_", "MSI_", "NO_GCE_")


@pytest.fixture
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, no command, no variable that a vendor's library reads, and no metadata service to be asked; the
    home."""
    for name in [name for name in os.environ if name.startswith(PREFIXES)]:
        monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", str(tmp_path / "no-commands"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    return home
