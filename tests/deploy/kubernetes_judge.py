"""Check objects against the Kubernetes API's own schemas, without a cluster. The checker is `kubernetes-validate`, in
an environment of its own.

python -m tests.deploy.kubernetes_judge        install it
python -m tests.deploy.kubernetes_judge lock   choose its dependencies anew (needs uv)
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import yaml

from providers.json_types import JsonObject
from tests.support.environments import Environment

JUDGE: Final = Environment(
    "kubernetes",
    Path(__file__).parent / "kubernetes.lock",
    ("kubernetes-validate==1.37.0",),
    "python -m tests.deploy.kubernetes_judge lock",
)

OLDEST: Final = "1.27"
"""The oldest version of Kubernetes that the chart supports."""

NEWEST: Final = "1.37"
"""The newest version that has schemas."""

CUSTOM: Final = ("gateway.networking.k8s.io/", "gateway.envoyproxy.io/", "monitoring.coreos.com/")
"""API groups of objects that are not part of Kubernetes and have no schema there."""


def complaints(objects: Sequence[JsonObject], version: str, folder: Path) -> str:
    """Return the complaints about the objects that belong to Kubernetes."""
    own = [each for each in objects if not str(each["apiVersion"]).startswith(CUSTOM)]
    written = folder / f"objects-{version}.yaml"
    written.write_text(yaml.safe_dump_all(own), encoding="utf-8")
    command = [sys.executable, "-S", "-m", "kubernetes_validate", "--strict", "--quiet", "-k", version, str(written)]
    done = subprocess.run(
        command, env=dict(JUDGE.variables()), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return done.stdout if done.returncode or done.stdout else ""


if __name__ == "__main__":
    if sys.argv[1:] == ["lock"]:
        JUDGE.write_lock()
    else:
        JUDGE.install()
