"""The addresses that may be called, by address and by name."""

from dataclasses import replace

import pytest

from providers.failure import FailureKind
from proxy.http_client.address_guard import GuardedResolver, address_allowed, in_own_network
from proxy.http_client.http_transport import HttpTransport
from tests.proxy.kit.transport_calls import TARGET, call, failure
from tests.support.looped import looped
from tests.support.vendor import FakeVendor

pytestmark = pytest.mark.smoke


ADDRESSES = {
    "93.184.215.14": (True, True),
    "2606:2800:21f:cb07:6820:80da:af6b:8b2c": (True, True),
    "10.0.0.1": (False, True),
    "192.168.1.1": (False, True),
    "172.16.0.1": (False, True),
    "100.64.0.1": (False, True),
    "127.0.0.1": (False, True),
    "::1": (False, True),
    "fd12::1": (False, True),
    "::ffff:10.0.0.1": (False, True),
    "169.254.169.254": (False, False),
    "::ffff:169.254.169.254": (False, False),
    "fe80::1": (False, False),
    "fe80::1%eth0": (False, False),
    "fd00:ec2::254": (False, False),
    "0.0.0.0": (False, False),
    "::": (False, False),
    "224.0.0.1": (False, False),
}


@looped(("address", "public", "private"), [(each, *may) for each, may in ADDRESSES.items()])
def test_an_address_may_be_called_where_it_belongs(address: str, public: bool, private: bool) -> None:
    assert address_allowed(address, allow_private=False) is public
    assert address_allowed(address, allow_private=True) is private


@pytest.mark.parametrize(("address", "allow_private"), [("10.0.0.1", False), ("169.254.169.254", True)])
async def test_a_name_that_leads_to_a_withheld_address_has_none(address: str, allow_private: bool) -> None:
    resolver = GuardedResolver(allow_private)
    with pytest.raises(OSError, match="may not be called"):
        await resolver.resolve(address)


async def test_a_name_that_leads_to_permitted_addresses_gives_them() -> None:
    resolver = GuardedResolver(allow_private=True)
    assert [entry[4] for entry in await resolver.resolve("127.0.0.1", 80)] == [("127.0.0.1", 80)]


async def test_plain_http_goes_to_no_public_address_whatever_a_name_leads_to() -> None:
    resolver = GuardedResolver(allow_private=True)
    public, own = await resolver.resolve("93.184.215.14", 80), await resolver.resolve("10.0.0.1", 80)
    assert in_own_network([*public, *own]) == own
    with pytest.raises(OSError, match="plain http"):
        in_own_network(public)


async def test_a_public_name_that_leads_inwards_is_never_called(vendor: FakeVendor, transport: HttpTransport) -> None:
    public = replace(TARGET, allow_private=False)
    assert await failure(transport, f"http://localhost:{vendor.port}", public) is FailureKind.CONNECT
    assert vendor.connections == 0


async def test_a_private_name_is_connected_to_where_it_is_meant(vendor: FakeVendor, transport: HttpTransport) -> None:
    response = await transport.open(call(f"http://localhost:{vendor.port}"), "req-1")
    assert response.status == 200
