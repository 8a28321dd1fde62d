"""A company migrates from LiteLLM with the commands of docs/migrate.md: 39 models, 30 teams and 200 keys.

`tests/proxy/cli/imports/litellm/test_teams.py` compares the permissions of all keys with LiteLLM's own code. Here some
keys send requests to the running gateway, with a fake vendor.
"""

import json
import os
import shlex
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
import pytest_asyncio

from providers.json_types import JsonObject
from proxy.cli.main import main
from tests.proxy.kit.raw_client import exchange, request
from tests.support import openai_wire
from tests.support.gateway import SERVER, RunningGateway, running_gateway
from tests.support.http_scripts import json_answer
from tests.support.litellm_installation import Installation, installation
from tests.support.looped import looped
from tests.support.vendor import FakeVendor

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.smoke]

PAGE: Final = Path("docs/migrate.md").absolute()
ALLOWED: Final[dict[str, Any]] = json.loads(
    Path("tests/fixtures/imports/litellm_allowed.json").read_text(encoding="utf-8")
)
NAMES: Final = [name for name in ALLOWED["names"] if "embedding" not in name][::3]
SAMPLE: Final = [row for row in ALLOWED["allowed"] if row["models"]][::5]


def commands() -> list[list[str]]:
    """Return the commands of the section that run this program."""
    section = PAGE.read_text(encoding="utf-8").partition("## From LiteLLM\n")[2].partition("\n## ")[0]
    text = section.replace("\\\n", " ")
    return [shlex.split(line)[1:] for line in text.splitlines() if line.startswith("dragoman ")]


def write(made: Installation, folder: Path) -> None:
    """Write the files under the names in the section."""
    for name, content in (
        ("config.yaml", made.config),
        ("models.json", made.models),
        ("teams.json", made.teams),
        *((f"keys-{number}.json", page) for number, page in enumerate(made.pages, 1)),
    ):
        (folder / name).write_text(json.dumps(content), encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Shop:
    """The gateway with the imported configuration, and the keys as their holders have them."""

    gateway: RunningGateway
    secrets: dict[str, str]
    statuses: list[int]

    async def status(self, secret: str, model: str) -> int:
        body: JsonObject = {"model": model, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 9}
        headers = {"Authorization": f"Bearer {secret}"}
        port = urlsplit(self.gateway.url).port or 0
        return (await exchange(port, request("POST", "/v1/chat/completions", body, headers))).status


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shop(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shop]:
    folder = tmp_path_factory.mktemp("shop")
    environment = dict.fromkeys(("SHOP_KEY", "GROQ_API_KEY"), "sample")
    environment["LITELLM_MASTER_KEY_DIGEST"] = f"sha256:{'0' * 64}"
    async with FakeVendor(lambda _: json_answer(200, openai_wire.chat("one"))) as vendor:
        made = installation(vendor.base_url)
        write(made, folder)
        patch = pytest.MonkeyPatch()
        with patch.context() as patched:
            patched.chdir(folder)
            for name, value in environment.items():
                patched.setitem(os.environ, name, value)
            statuses = [main(command) for command in commands()]
        table = (folder / "table.yaml").read_text(encoding="utf-8")
        assert "\nserver: {}\n" in table
        text = table.replace("\nserver: {}\n", f"\n{SERVER}")
        async with running_gateway(text, tmp_path_factory.mktemp("gateway"), environment) as gateway:
            yield Shop(gateway, made.secrets, statuses)


async def test_the_commands_of_the_readme_do_what_it_says(shop: Shop) -> None:
    assert shop.statuses == [3, 0, 0]


@looped("row", SAMPLE, ids=lambda row: row["keys"][0])
async def test_a_key_is_answered_for_the_models_that_it_had(shop: Shop, row: dict[str, Any]) -> None:
    secret = shop.secrets[row["keys"][0]]
    for name in NAMES:
        status = await shop.status(secret, name)
        assert status == 200 if name in row["models"] else status in (403, 404), (name, status)


async def test_keys_that_did_not_work_do_not(shop: Shop) -> None:
    (dead,) = [row["keys"] for row in ALLOWED["allowed"] if not row["models"]]
    assert {await shop.status(shop.secrets[alias], "gpt-4o") for alias in dead[:12]} <= {401, 403}
    assert await shop.status("sk-none", "gpt-4o") == 401
