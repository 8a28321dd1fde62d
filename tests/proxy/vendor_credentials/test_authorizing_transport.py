"""The transport for calls whose credential expires: which token each call gets, and when one is fetched, over real
sockets."""

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial

import pytest
from pydantic import SecretStr

from providers.dialect import UpstreamRequest
from providers.failure import FailureKind, UpstreamError
from providers.vendor_credential import AwsSource, Credential, EntraSource, GoogleSource, OidcSource, Source
from proxy.upstream.transport import RepeatableError
from proxy.vendor_credentials import aws, entra, google
from proxy.vendor_credentials.authorizing_transport import FORGET_AFTER, AuthorizedTransport
from proxy.vendor_credentials.token_cache import Bearer, Fetched, Unobtainable
from tests.proxy.kit.transport_calls import OK, TARGET, Tidy, call, whole
from tests.proxy.vendor_credentials.kit import bearer
from tests.support.http_scripts import head, json_answer
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Hang, Received, Script, Send, Until

pytestmark = pytest.mark.smoke


REFUSED = json_answer(401, {"error": "no"})


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Provider:
    """A token endpoint that returns `token-1`, `token-2` and so on, and a vendor beside it that accepts the tokens in
    `good`."""

    vendor: FakeVendor
    lifetime: float = 3600
    given: int = 0
    good: set[str] = field(default_factory=set)

    def token(self, request: Received) -> Script:
        self.given += 1
        return json_answer(200, {"access_token": f"token-{self.given}", "expires_in": self.lifetime})

    def answer(self, request: Received) -> Script:
        return OK if not self.good or (request.header("authorization") or "") in self.good else REFUSED

    def source(self, client: str = "me") -> OidcSource:
        return OidcSource(f"{self.vendor.base_url}/token", client, SecretStr("canary"), allow_private=True)

    def call(self, source: Source | None = None) -> UpstreamRequest:
        credential = Credential(static=TARGET.credential.static, source=source or self.source())
        return call(f"{self.vendor.base_url}/v1/x", replace(TARGET, credential=credential))

    def seen(self) -> list[str]:
        return [each.header("authorization") or "" for each in self.vendor.requests if each.path != "/token"]


@dataclass
class Rig:
    """An authorized transport in front of a provider."""

    transport: AuthorizedTransport
    provider: Provider
    clock: Clock

    async def status(self, sent: UpstreamRequest | None = None) -> int:
        call = sent or self.provider.call()
        try:
            response = await self.transport.open(call, "req-1")
        except RepeatableError as error:
            response = await self.transport.open(call, "req-1", (error.cause,))
        await whole(response)
        response.release()
        return response.status


@asynccontextmanager
async def rig() -> AsyncIterator[Rig]:
    """Run a rig for the duration of the block; every response must have been released or closed at the end."""
    clock = Clock()
    async with FakeVendor() as vendor:
        provider = Provider(vendor)
        vendor.answer_path("/token", provider.token)
        vendor.default = provider.answer
        transport = AuthorizedTransport(Tidy(), clock)
        yield Rig(transport, provider, clock)
        await transport.aclose()
        await vendor.connected(0)


@pytest.fixture
async def made() -> AsyncIterator[Rig]:
    async with rig() as made:
        yield made


async def test_a_call_with_a_key_of_its_own_passes_as_it_is(made: Rig) -> None:
    assert await made.status(call(f"{made.provider.vendor.base_url}/v1/x")) == 200
    assert made.provider.seen() == ["Bearer sk-operator"]
    assert made.provider.given == 0


async def test_a_token_is_fetched_once_and_put_on_every_call_beside_the_target_s_own_headers(made: Rig) -> None:
    for _ in range(3):
        assert await made.status() == 200
    assert made.provider.seen() == ["Bearer token-1"] * 3
    assert made.provider.given == 1
    assert made.provider.vendor.requests[-1].header("x-org") == "acme"


async def test_the_tokens_that_calls_carried_are_known_for_their_target_alone(made: Rig) -> None:
    sent = made.provider.call()
    assert list(made.transport.secrets(sent.target)) == []
    await made.status(sent)
    assert [each.get_secret_value() for each in made.transport.secrets(sent.target)] == ["token-1"]
    assert list(made.transport.secrets(TARGET)) == []


async def test_a_hundred_calls_at_once_cause_one_fetch(made: Rig) -> None:
    go = asyncio.Event()
    made.provider.vendor.answer_path("/token", lambda request: (Until(go), *made.provider.token(request)))
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(made.status()) for _ in range(100)]
        await made.provider.vendor.received(1)
        for _ in range(20):
            await asyncio.sleep(0)
        assert made.provider.vendor.connections == 1
        go.set()
    assert [each.result() for each in calls] == [200] * 100
    assert made.provider.given == 1


async def test_a_token_near_its_end_is_renewed_beside_the_calls_that_still_use_it(made: Rig) -> None:
    await made.status()
    made.clock.now += 3300
    go = asyncio.Event()
    made.provider.vendor.answer_path("/token", lambda request: (Until(go), *made.provider.token(request)))
    assert [await made.status() for _ in range(3)] == [200] * 3
    go.set()
    while made.provider.seen()[-1] == "Bearer token-1":
        assert await made.status() == 200
    assert made.provider.given == 2
    assert set(made.provider.seen()) == {"Bearer token-1", "Bearer token-2"}


async def test_a_refused_token_is_renewed_once_and_the_call_sent_once_more(made: Rig) -> None:
    made.provider.good = {"Bearer token-2"}
    assert await made.status() == 200
    assert await made.status() == 200
    assert made.provider.seen() == ["Bearer token-1", "Bearer token-2", "Bearer token-2"]
    bodies = [each.body for each in made.provider.vendor.requests if each.path != "/token"]
    assert len(set(bodies)) == 1


async def test_a_second_refusal_reaches_the_caller(made: Rig) -> None:
    made.provider.good = {"Bearer other"}
    assert await made.status() == 401
    assert made.provider.seen() == ["Bearer token-1", "Bearer token-2"]


async def test_a_refusal_reaches_the_caller_when_no_other_token_is_to_be_had(made: Rig) -> None:
    assert await made.status() == 200
    made.provider.good = {"Bearer other"}
    made.provider.vendor.answer_path("/token", json_answer(500, {}))
    assert await made.status() == 401
    assert made.provider.seen() == ["Bearer token-1"] * 2


UNFINISHED: Script = (Send(head(401, [("content-length", "9")])), Hang())


async def test_a_refused_call_whose_answer_goes_on_is_closed_before_the_next(made: Rig) -> None:
    await made.status()
    made.provider.vendor.answer(UNFINISHED)
    assert await made.status() == 200
    await made.provider.vendor.requests[2].gone.wait()


async def test_a_call_that_is_cancelled_while_its_token_is_renewed_leaves_no_connection(made: Rig) -> None:
    await made.status()
    go = asyncio.Event()
    made.provider.vendor.answer_path("/token", lambda request: (Until(go), *made.provider.token(request)))
    made.provider.vendor.answer(UNFINISHED)
    waiting = asyncio.create_task(made.status())
    await made.provider.vendor.received(4)
    waiting.cancel()
    await made.provider.vendor.requests[2].gone.wait()
    go.set()
    assert await made.status() == 200


async def test_without_a_token_a_call_fails_as_the_gateway_s_own_and_the_next_one_may_work(made: Rig) -> None:
    made.provider.vendor.answer_path("/token", json_answer(401, {"error": "invalid_client"}))
    with pytest.raises(UpstreamError) as caught:
        await made.status()
    assert caught.value.failure.kind is FailureKind.AUTH
    assert "canary" not in str(caught.value)
    made.provider.vendor.answer_path("/token", made.provider.token)
    assert await made.status() == 200
    assert made.provider.seen() == ["Bearer token-1"]


async def test_equal_sources_share_a_token_though_their_targets_are_made_anew(made: Rig) -> None:
    assert await made.status(made.provider.call()) == await made.status(made.provider.call()) == 200
    assert await made.status(made.provider.call(made.provider.source("another"))) == 200
    assert made.provider.given == 2


async def test_what_no_call_wanted_for_an_hour_is_forgotten_when_another_comes(made: Rig) -> None:
    await made.status()
    made.clock.now += FORGET_AFTER + 1
    await made.status(made.provider.call(made.provider.source("another")))
    await made.status()
    assert made.provider.given == 3


def signs(request: UpstreamRequest) -> Mapping[str, str]:
    """Return the headers of a call, unmasked."""
    return request.target.credential.headers()


class Library:
    """A vendor's library in place of each kind's: returns a token, or fails."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fails: bool = False) -> None:
        self.asked: list[Source] = []
        self.fails = fails
        monkeypatch.setattr(aws, "AwsFetch", lambda source: partial(self.fetch, source))
        monkeypatch.setattr(google, "GoogleFetch", lambda source: partial(self.fetch, source))
        monkeypatch.setattr(entra, "fetch", self.fetch)

    def fetch(self, source: Source) -> Fetched:
        """Return a token; it must be called in a thread without a running event loop."""
        self.asked.append(source)
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        if self.fails:
            raise Unobtainable("no")
        return Fetched(bearer("by-library"), 3600)


KINDS: list[Source] = [AwsSource("bedrock", "eu-central-1"), GoogleSource("scope"), EntraSource("scope")]


@pytest.mark.parametrize("source", KINDS)
async def test_each_kind_is_fetched_by_its_library_in_a_thread(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library(monkeypatch)
    async with rig() as made:
        assert await made.status(made.provider.call(source)) == 200
        assert await made.status(made.provider.call(source)) == 200
        assert library.asked == [source]
        assert made.provider.seen() == ["Bearer by-library"] * 2


@pytest.mark.parametrize("source", KINDS)
async def test_what_no_library_can_get_is_the_gateway_s_fault(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    Library(monkeypatch, fails=True)
    async with rig() as made:
        with pytest.raises(UpstreamError) as caught:
            await made.status(made.provider.call(source))
        assert caught.value.failure.kind is FailureKind.AUTH
        assert made.provider.seen() == []


async def test_closing_does_not_wait_for_a_library_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go = threading.Event(), threading.Event()

    def hang(source: Source) -> Fetched:
        begun.set()
        assert go.wait(30)
        return Fetched(bearer(), 3600)

    monkeypatch.setattr(entra, "fetch", hang)
    async with rig() as made:
        waiting = asyncio.create_task(made.status(made.provider.call(EntraSource("scope"))))
        await asyncio.to_thread(begun.wait)
    with pytest.raises(asyncio.CancelledError):
        await waiting
    go.set()


async def test_a_call_shows_neither_its_token_nor_its_secret(made: Rig) -> None:
    sent = made.provider.call()
    carrying = replace(sent, target=replace(sent.target, credential=Bearer(SecretStr("canary")).credential(sent)))
    assert signs(carrying)["Authorization"] == "Bearer canary"
    assert "canary" not in repr(carrying) + repr(sent) + repr(vars(made.transport))
