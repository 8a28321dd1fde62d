"""A real Prometheus beside gateways: started with rules, queried over its API, and stopped."""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from tests.observe.promtool import installed
from tests.support.gateway import free_ports


@dataclass(frozen=True, slots=True)
class RunningPrometheus:
    url: str
    http: aiohttp.ClientSession
    folder: Path

    def scrape(self, job: str, port: int) -> None:
        """Start to scrape a gateway on this machine, as a target of a job."""
        target = [{"targets": [f"127.0.0.1:{port}"], "labels": {"job": job}}]
        unfinished = self.folder / f"{port}.unfinished"
        unfinished.write_text(json.dumps(target), encoding="utf-8")
        unfinished.rename(self.folder / f"targets-{port}.json")

    async def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the series of an instant query. Raises AssertionError with Prometheus' response if it refuses the
        query."""
        async with self.http.post(f"{self.url}/api/v1/query", data={"query": expression}) as answer:
            found = await answer.json()
        assert found["status"] == "success", (expression, found)
        result = found["data"]["result"]
        return result if found["data"]["resultType"] == "vector" else [{"metric": {}, "value": result}]

    async def firing(self) -> set[str]:
        """Return the names of the firing alerts."""
        async with self.http.get(f"{self.url}/api/v1/alerts") as answer:
            found = (await answer.json())["data"]["alerts"]
        return {alert["labels"]["alertname"] for alert in found if alert["state"] == "firing"}


def configuration(folder: Path) -> str:
    """Return a configuration that scrapes the targets of `RunningPrometheus.scrape` and evaluates the rules every
    second."""
    found = [{"files": [f"{folder}/targets-*.json"], "refresh_interval": "1s"}]
    scrape = {"job_name": "unnamed", "file_sd_configs": found}
    every = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    return yaml.safe_dump({"global": every, "rule_files": ["rules.yaml"], "scrape_configs": [scrape]})


@asynccontextmanager
async def running_prometheus(folder: Path, rules: str) -> AsyncIterator[RunningPrometheus]:
    """Start Prometheus with these rules and its data in `folder`, and yield it."""
    (port,) = free_ports(1)
    (folder / "rules.yaml").write_text(rules, encoding="utf-8")
    (folder / "prometheus.yml").write_text(configuration(folder), encoding="utf-8")
    command = [installed("prometheus"), f"--config.file={folder / 'prometheus.yml'}"]
    command += [f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address=127.0.0.1:{port}"]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)  # noqa: ASYNC220 - it is only begun here
    try:
        async with aiohttp.ClientSession() as http:
            found = RunningPrometheus(f"http://127.0.0.1:{port}", http, folder)
            await _until_ready(found, process)
            yield found
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait)


async def _until_ready(prometheus: RunningPrometheus, process: "subprocess.Popen[bytes]") -> None:
    while process.poll() is None:
        with suppress(aiohttp.ClientConnectionError):
            async with prometheus.http.get(f"{prometheus.url}/-/ready") as answer:
                if answer.status == 200:
                    return
        await asyncio.sleep(0.05)
    raise AssertionError((prometheus.folder / "prometheus.log").read_text(encoding="utf-8"))
