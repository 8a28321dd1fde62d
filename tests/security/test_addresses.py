"""Addresses that only look public: a vendor whose name leads to one is not called, and no config file may name one."""

import asyncio
import socket
from ipaddress import IPv4Address, IPv6Address

import pytest

from config.addresses import address_fault, url_fault
from providers.failure import FailureKind
from proxy.http_client.address_guard import Found, GuardedResolver, address_allowed
from proxy.http_client.http_transport import HttpTransport
from tests.proxy.kit.transport_calls import TARGET, failure, tidy_transport
from tests.security.test_rebinding import STRANGER
from tests.support.looped import looped

METADATA = ("169.254.169.254", "168.63.129.16", "192.0.0.192", "100.100.100.200", "127.0.0.1", "0.0.0.0")
INSIDE = ("10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1")
VENDORS = ("104.18.7.192", "8.8.8.8", "162.159.140.245", "1.0.0.1")


def forms(inner: str) -> dict[str, str]:
    """Return IPv6 addresses by which a network leads to an IPv4 address, by the name of the mechanism."""
    bits = int(IPv4Address(inner))
    local = 0x0064_FF9B_0001 << 80
    return {
        "NAT64": str(IPv6Address((0x0064_FF9B << 96) | bits)),
        "NAT64, own prefix /48": str(IPv6Address(local | (bits >> 16) << 64 | (bits & 0xFFFF) << 40)),
        "NAT64, own prefix /56": str(IPv6Address(local | (bits >> 24) << 64 | (bits & 0xFFFFFF) << 32)),
        "NAT64, own prefix /64": str(IPv6Address(local | bits << 24)),
        "NAT64, own prefix /96": str(IPv6Address(local | bits)),
        "IPv4-mapped": f"::ffff:{inner}",
        "IPv4-compatible": f"::{inner}",
        "IPv4-translated": f"::ffff:0:{inner}",
        "6to4": str(IPv6Address((0x2002 << 112) | bits << 80 | 1)),
        "Teredo": str(IPv6Address((0x20010000 << 96) | bits << 64 | 0xF7F7F7F7)),
        "Teredo's client": str(IPv6Address((0x20010000 << 96) | 0x08080808 << 64 | bits ^ 0xFFFFFFFF)),
        "ISATAP": str(IPv6Address((0x26064700 << 96) | 0x5EFE << 32 | bits)),
    }


@looped("inner", METADATA)
def test_threat_16_metadata_and_this_machine_are_refused_in_every_form_even_where_private_is_allowed(
    inner: str,
) -> None:
    ways = {way: address for way, address in forms(inner).items() if (way, inner) != ("IPv4-mapped", "127.0.0.1")}
    if inner == "0.0.0.0":
        # The unspecified address and the bare prefix are not callable addresses under any interpretation.
        ways.pop("IPv4-compatible")
    assert {way: address for way, address in ways.items() if address_allowed(address, True)} == {}
    assert [url for url in ways.values() if url_fault(f"http://[{url}]/v1") is None] == []


@looped("inner", INSIDE)
def test_threat_16_no_form_of_a_private_address_is_public(inner: str) -> None:
    for way, address in forms(inner).items():
        assert not address_allowed(address, False), way
        assert address_fault(f"https://[{address}]/v1", allow_private=False) is not None, way
        assert address_allowed(address, True), way


@looped("address", ["fec0::1", "192.88.99.1", "192.0.0.1", "::8.8.8.8", "2002:808:808::1", "4000::1"])
def test_threat_16_what_no_vendor_has_is_not_public(address: str) -> None:
    assert not address_allowed(address, False)


@looped("inner", VENDORS)
def test_a_vendor_behind_a_network_s_nat64_is_called_as_before(inner: str) -> None:
    ways = forms(inner)
    for way in ("NAT64", "NAT64, own prefix /64", "NAT64, own prefix /96", "IPv4-mapped"):
        assert address_allowed(ways[way], False), way
        assert address_fault(f"https://[{ways[way]}]/v1", allow_private=False) is None, way


async def test_threat_16_a_name_that_resolves_to_metadata_behind_nat64_is_not_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hosts = [*forms("169.254.169.254").values(), "168.63.129.16", "192.0.0.192"]

    def look_up(self: GuardedResolver, host: str, port: int) -> asyncio.Future[list[Found]]:
        found: asyncio.Future[list[Found]] = asyncio.get_running_loop().create_future()
        found.set_result([(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (each, port)) for each in hosts])
        return found

    monkeypatch.setattr(GuardedResolver, "_look_up", look_up)
    for allow_private in (False, True):
        with pytest.raises(OSError, match="may not be called"):
            await GuardedResolver(allow_private).resolve("rebinding.example", 80)
    transport: HttpTransport
    async with tidy_transport() as transport:
        for target in (TARGET, STRANGER):
            assert await failure(transport, "http://rebinding.example/", target) is FailureKind.CONNECT
