"""A non-streaming response is byte-identical whether or not the gateway streamed from its vendor."""

from providers.json_types import JsonObject
from providers.profiles.load_profiles import load_profiles
from providers.unified_request import Operation
from tests.conformance.fake_engine import FakeEngine, fake_dialect_of
from tests.conformance.feature_requests import CHOICES, SMALLEST, TOO_MANY
from tests.conformance.run_matrix import PATHS, api_path
from tests.proxy.kit.gateway_rig import Rig, rig
from tests.support.looped import looped

EXACT = [name for name, profile in load_profiles().items() if profile.exact_streams]
PLAIN: dict[str, JsonObject] = {
    "nothing": {},
    "cut": {"max_tokens": 2},
    "neutral": {"n": 1, "top_p": 1, "max_tokens": 50},
    "steered": {"temperature": 1},
    "too large": {"max_tokens": TOO_MANY},
}
IN_DOUBT: dict[str, JsonObject] = {
    "several choices": {"n": 2},
    "constrained": {"guided_choice": CHOICES},
    "extra": {"inference_extra_params": {"x": 1}},
    "headers": {"inference_extra_headers": {"traceparent": "00-1-1-00"}},
}


def table(profile: str) -> str:
    """Return a configuration with two deployments of one profile, one of which allows streaming for non-streaming
    requests."""
    address = f"http://127.0.0.1:PORT{api_path(profile)}"
    settings = f'profile: {profile}, api_key: k, base_url: "{address}", allow_private: true'
    settings += ", max_output_tokens: 8192"
    vendors = f"  plain: {{{settings}}}\n  auto: {{{settings}, stream_upstream: auto}}\n"
    return f"vendors:\n{vendors}models:\n  plain/*: {{}}\n  auto/*: {{}}\n"


async def exchange_of(running: Rig, profile: str, vendor: str, body: JsonObject) -> tuple[object, list[bool]]:
    """Return the client's response without its identifying fields, and for each vendor call whether it requested a
    stream."""
    fake = running.vendor.default
    assert isinstance(fake, FakeEngine)
    fake.forget()
    running.vendor.requests.clear()
    model = load_profiles()[profile].examples[0]
    path = PATHS[Operation.CHAT]
    answer = await running.post(path, {"model": f"{vendor}/{model}", **SMALLEST[Operation.CHAT], **body})
    shown = {name: value for name, value in answer.json().items() if name not in ("id", "created", "model")}
    headers = {name: value for name, value in answer.headers.items() if name.startswith("x-dragoman-e")}
    calls = ((each, fake_dialect_of(profile).call(each.path)) for each in running.vendor.requests)
    streamed = [wire.streams(each.path, each.json()) for each, wire in calls if wire is not None]  # type: ignore[arg-type]
    text = repr(shown).replace(f"{vendor}/", "")
    return (answer.status, text, headers), streamed


@looped("profile", EXACT)
async def test_a_plain_answer_out_of_a_stream_is_the_same_to_the_letter(profile: str) -> None:
    async with rig(table(profile)) as running:
        running.vendor.default = FakeEngine(profile)
        for name, body in PLAIN.items():
            plain, at_once = await exchange_of(running, profile, "plain", body)
            auto, streamed = await exchange_of(running, profile, "auto", body)
            assert (name, auto) == (name, plain)
            assert (set(at_once), set(streamed), len(streamed)) == ({False}, {True}, len(at_once))


@looped("profile", EXACT)
async def test_an_answer_that_a_stream_might_not_tell_whole_is_asked_for_in_one_piece(profile: str) -> None:
    async with rig(table(profile)) as running:
        running.vendor.default = FakeEngine(profile)
        for name, body in IN_DOUBT.items():
            plain, at_once = await exchange_of(running, profile, "plain", body)
            auto, streamed = await exchange_of(running, profile, "auto", body)
            assert (name, auto, streamed) == (name, plain, at_once)
            assert not any(streamed)
