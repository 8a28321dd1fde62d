"""The output of the chart, as committed in `rendered`, and the digests by which the files are known to be current.

python -m tests.deploy.rendered   render them anew (needs Helm 3 or 4 on PATH)
"""

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import yaml

from providers.json_types import JsonObject
from tests.support.gateway import ROOT

CHART: Final = ROOT / "deploy" / "helm" / "dragoman"
FOLDER: Final = Path(__file__).parent
VALUES: Final = FOLDER / "values"
RENDERED: Final = FOLDER / "rendered"
MARKS: Final = RENDERED / "SHA256SUMS"

KUBERNETES: Final = "1.31.0"
"""The version that is passed to the templates; a Helm built without the flags of its release passes 1.20."""

RELEASES: Final = {"default": ("dragoman", "default"), "everything": ("gw", "llm"), "claim": ("gw", "llm")}
"""Name and namespace of the release for each values file."""


def digests() -> str:
    """Return a line for each file of the chart, each values file and each rendered file, in the format of sha256sum."""
    files = [*_files(CHART), *_files(VALUES), *(path for path in _files(RENDERED) if path != MARKS)]
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(ROOT)}\n" for path in files)


def _files(folder: Path) -> Iterable[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def render(helm: str, case: str) -> str:
    """Return the output of `helm template`. Raises CalledProcessError."""
    name, namespace = RELEASES[case]
    command = [helm, "template", name, str(CHART), "--namespace", namespace, "--kube-version", KUBERNETES]
    values = VALUES / f"{case}.yaml"
    if values.exists():
        command += ["--values", str(values)]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def objects(text: str) -> list[JsonObject]:
    """Return the objects in a rendered text."""
    return [each for each in yaml.safe_load_all(text) if each]


def committed(case: str) -> list[JsonObject]:
    """Return the committed objects of a values file."""
    return objects((RENDERED / f"{case}.yaml").read_text(encoding="utf-8"))


def main() -> int:
    """Write every rendered file and the digests."""
    helm = shutil.which("helm")
    if helm is None:
        print("helm is not on PATH", file=sys.stderr)
        return 2
    RENDERED.mkdir(exist_ok=True)
    for case in RELEASES:
        (RENDERED / f"{case}.yaml").write_text(render(helm, case), encoding="utf-8")
    MARKS.write_text(digests(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
