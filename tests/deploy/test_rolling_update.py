"""A rolling update behind the proxies of docs/deploy.md loses no request."""

from collections import Counter
from pathlib import Path

import pytest

from tests.deploy.proxies import HAPROXY, NGINX, ProxyProgram
from tests.deploy.rolling_update import roll


@pytest.mark.nightly
@pytest.mark.timeout(180)
async def test_a_rolling_update_behind_haproxy_loses_no_request(tmp_path: Path) -> None:
    rolled = await roll(HAPROXY, tmp_path, least=500, clients=16, pause=0.05)
    assert rolled.lost == Counter()
    assert set(rolled.codes) == {0}
    assert rolled.requests >= 500


@pytest.mark.nightly
@pytest.mark.timeout(600)
@pytest.mark.parametrize("program", [HAPROXY, NGINX], ids=lambda program: program.name)
async def test_rolling_updates_lose_none_of_ten_thousand_requests(program: ProxyProgram, tmp_path: Path) -> None:
    rolled = await roll(program, tmp_path, least=10_000, clients=32, pause=0.05)
    print(rolled)
    assert rolled.lost == Counter()
    assert set(rolled.codes) == {0}
    assert rolled.requests >= 10_000
