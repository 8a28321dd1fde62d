"""The vendors' SDKs in an environment of their own, as judges of bodies and fixtures.

python -m tests.contracts.sdk_judges        install them
python -m tests.contracts.sdk_judges lock   choose their dependencies anew (needs uv)
"""

import base64
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import orjson
import pytest

from tests.support.environments import Environment, LineProcess

FOLDER = Path(__file__).parent

SDKS = Environment(
    "sdks",
    FOLDER / "sdks.lock",
    (
        "anthropic==2.11.0",
        "botocore==1.44.5",
        "cerebras-cloud-sdk==1.91.0",
        "cohere==7.3.1",
        "fireworks-ai==1.2.28",
        "google-genai==3.4.0",
        "groq==1.7.0",
        "huggingface-hub",
        "mistralai==3.7.0",
        "msgspec",
        "ollama==0.6.3",
        "openai==3.54.0",
        "openrouter==1.3.84",
        "sambanova==1.13.0",
        "scale-gp==0.1.0a62",
        "scale-gp-beta==0.7.0",
        "text-generation==0.7.0",
        "together==3.1.1",
        "jsonschema",
        "orjson",
        "tabulate",
    ),
    "python -m tests.contracts.sdk_judges lock",
    (
        "cffi",
        "cryptography",
        "cyclopts",
        "fsspec",
        "hf-xet",
        "httpx2-jsfetch",
        "jsonpath-python",
        "pyasn1",
        "pyasn1-modules",
        "pygments",
        "rich",
        "rich-rst",
        "types-pyyaml",
        "types-requests",
    ),
    (
        "ai21==4.3.0",
        "ibm-watsonx-ai==1.8.1",
        "replicate==1.0.7",
        "scale-llm-engine==0.0.0b45",
        "sglang==0.5.23; sys_platform == 'linux' and python_version < '3.14'",
    ),
)
"""The third list names excluded packages: dependencies of command lines, logins and downloads, 70 MB, which the types
do not need. The fourth names packages that are installed without their dependencies, among them pandas and a
deep-learning framework."""

_NEWEST = sys.version_info >= (3, 14)
ABSENT: Mapping[str, str] = {
    **(
        {"sglang.sdk_types": "sglang has wheels for Linux and Python up to 3.13"}
        if _NEWEST or sys.platform != "linux"
        else {}
    ),
    **({"llm_engine.sdk_types": "llmengine needs pydantic.v1, which Python 3.14 does not run"} if _NEWEST else {}),
}
"""Judges that cannot run on this Python version, and why."""

Check = Literal["body", "answer", "events"]


class Judges(LineProcess):
    """The judges in a process of their own."""

    def __init__(self, environment: Environment = SDKS) -> None:
        super().__init__(environment, "tests.contracts.judge_process")
        self._verdicts: dict[bytes, str | None] = {}

    def fault(self, judge: str, check: Check, payloads: list[bytes], operation: str = "") -> str | None:
        """Return the fault that a judge finds in a body, a response, or the payloads of a stream's events; `None` if
        it finds no fault.

        `judge` is `sdk:operation` of a generated SDK, or a module below `tests.providers.dialects`. Skips the test if
        the judge is absent.
        """
        if judge in ABSENT:
            pytest.skip(ABSENT[judge])
        encoded = [base64.b64encode(payload).decode() for payload in payloads]
        order = {"judge": judge, "check": check, "operation": operation, "payloads": encoded}
        line = orjson.dumps(order)
        # Many cells send the same body.
        if line not in self._verdicts:
            self._verdicts[line] = orjson.loads(self.exchange(line.decode()))
        return self._verdicts[line]


def main() -> None:
    if sys.argv[1:] == ["lock"]:
        SDKS.write_lock()
    else:
        SDKS.install()


if __name__ == "__main__":
    main()
