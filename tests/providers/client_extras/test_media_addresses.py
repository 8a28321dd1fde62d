"""The addresses of media that may be sent to a deployment."""

import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from config.addresses import reach
from providers.client_extras.media_addresses import check_media
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from providers.profiles.load_profiles import load_profiles
from providers.target import NO_MEDIA, Media, Permits, Target
from providers.unified_request import ChatPrompt, TextPrompt, UnifiedRequest
from tests.providers.dialects.openai.kit import chat, completion, target
from tests.support.looped import looped

ENGINE = replace(target("vllm"), permits=Permits(reach=reach))
HOSTED = replace(target("openai"), permits=Permits(reach=reach))
PART: JsonObject = {"type": "x"}
TEXT: JsonObject = {"type": "text", "text": "x"}
OPEN = frozenset({"https", "http", "gs", "s3", "file", "data", "ftp"})


def refusal(request: UnifiedRequest, to: Target, media: Media = NO_MEDIA) -> Refusal | None:
    try:
        check_media(request, to, media)
    except Refusal as refused:
        return refused
    return None


def talk(*parts: JsonValue) -> UnifiedRequest:
    return chat(prompt=ChatPrompt(({"role": "user", "content": [*parts]},)))


def image(url: JsonValue) -> JsonObject:
    return {"type": "image_url", "image_url": {"url": url}}


@looped("scheme", ["http", "gs", "s3", "file", "ftp", "blob", "javascript"])
def test_only_https_and_data_pass_unasked(scheme: str) -> None:
    for to in (ENGINE, HOSTED):
        refused = refusal(talk(image(f"{scheme}://example.com/x.png")), to)
        assert refused is not None
        assert refused.param == "messages"
        assert refused.message.startswith("'messages[0].content[0].image_url.url' has the scheme ")
        assert f"`media: {{schemes: [data, https, {scheme}]}}`" in refused.message
        assert refusal(talk(image(f"{scheme}://example.com/x.png")), to, Media(OPEN | {scheme})) is None


@looped("url", ["https://example.com/x.png", "HTTPS://EXAMPLE.COM", "data:image/png;base64,AA"])
def test_https_and_data_pass_everywhere(url: str) -> None:
    for to in (ENGINE, HOSTED):
        assert refusal(talk(image(url), {"type": "image_url", "image_url": url}), to) is None


INSIDE = ["https://10.0.0.9/x", "https://127.0.0.1/x", "https://[fd00::1]/x", "https://[::1]:80", "https://redis/x",
          "https://localhost", "https://a.svc.cluster.local./x", "https://minio.internal?x"]  # fmt: skip
NEVER = ["https://169.254.169.254/x", "https://[fe80::1]/", "https://0x7f.1/", "https://2130706433/", "https://0/",
         "https://metadata/x", "https://metadata.google.internal./x", "https://[fd00:ec2::254]/x"]  # fmt: skip
NO_HOST = ["https:/10.0.0.9/x", "https:10.0.0.9", "https://", "https:///x", "https://u@example.com/", "https://a b/",
           "https://example.com\\@10.0.0.9/", "https://ex\tample.com/", "https://\u2460.com/", "https://%31.0.0.1/",
           "https://example.com#@10.0.0.9\x00/"[:19] + ":x"]  # fmt: skip


@looped("url", [*INSIDE, *NEVER, *NO_HOST])
def test_an_engine_is_sent_no_address_that_may_lie_inside_its_network(url: str) -> None:
    assert refusal(talk(image(url)), ENGINE) is not None
    assert refusal(talk(image(url)), HOSTED) is None


@looped("url", INSIDE)
def test_the_table_opens_the_own_network(url: str) -> None:
    assert refusal(talk(image(url)), ENGINE, Media(allow_private=True)) is None


@looped("url", [*NEVER, *NO_HOST])
def test_nothing_opens_metadata_or_an_address_that_readers_disagree_on(url: str) -> None:
    assert refusal(talk(image(url)), ENGINE, Media(OPEN, allow_private=True)) is not None


def test_an_address_without_a_scheme_is_a_path_to_an_engine_alone() -> None:
    for url in ("/etc/x.png", "x.png", "", "//10.0.0.9/x.png"):
        assert refusal(talk(image(url)), ENGINE) is not None
        assert refusal(talk(image(url)), HOSTED) is None
    assert refusal(talk(image("iVBORw0KGgo" + "A" * 80)), ENGINE) is None


def test_labels_and_texts_of_a_part_are_no_addresses() -> None:
    part: JsonObject = {
        "type": "x",
        "title": "file:///x",
        "filename": "C:\\x",
        "context": "http://h/",
        "note": "Note: x",
    }
    assert refusal(talk(part, {"type": "text", "text": "http://10.0.0.9/"}, "http://10.0.0.9/"), ENGINE) is None


def test_images_of_a_prompt_are_data_unless_data_is_shut_out() -> None:
    asked = completion({"images": (("data:image/png;base64,AA",),)})
    assert refusal(asked, ENGINE) is None
    refused = refusal(asked, ENGINE, Media(frozenset({"https"})))
    assert refused is not None
    assert (refused.param, "'images[0]'" in refused.message) == ("images", True)


def test_the_team_s_word_counts_before_the_deployment_s() -> None:
    to = replace(HOSTED, permits=Permits(media=Media(frozenset({"gs"}))))
    assert refusal(talk(image("gs://b/x")), to) is None
    assert refusal(talk(image("gs://b/x")), to, Media(frozenset({"https"}))) is not None


def test_texts_are_read_for_images_only_where_the_engine_does() -> None:
    tgi = replace(target("tgi"), permits=Permits(reach=reach))
    for text, passes in (
        ("![](http://example.com/x)", False),
        ("![]( https://10.0.0.9/x )", False),
        ("![](https://example.com/x) ![](https://127.0.0.1/)", False),
        ("![](https://example.com/x)", True),
        ("![x](http://10.0.0.9/)", True),
        ("![](x.png) ![](file:///x)", True),
        ("![](" * 1000, True),
    ):
        for asked in (completion(prompt=TextPrompt(("a", text))), talk({"type": "text", "text": text})):
            assert (refusal(asked, tgi) is None) == passes
            assert refusal(asked, ENGINE) is None
        assert (refusal(chat(prompt=ChatPrompt(({"role": "user", "content": text},))), tgi) is None) == passes


def test_parts_pass_in_any_number_and_the_last_is_judged_like_the_first() -> None:
    many = [TEXT, PART, image("https://example.com/x.png")] * 5000
    assert refusal(talk(*many), ENGINE) is None
    refused = refusal(talk(*many, image("file:///x")), ENGINE)
    assert refused is not None
    assert "content[15000]" in refused.message


@given(st.text(st.sampled_from("htps:/.@\\[]0127localhost \t#?%"), max_size=24))
def test_whatever_passes_to_an_engine_has_a_scheme_or_is_inline(rest: str) -> None:
    for url in (rest, f"https://{rest}"):
        if refusal(talk(image(url)), ENGINE) is None:
            assert url.lower().lstrip().startswith("https://")
            authority = re.split("[/?#]", url.partition("//")[2])[0]
            assert not {"@", "\\"} & set(authority)


def test_a_plain_conversation_is_searched_where_the_engine_fetches_what_a_text_names() -> None:
    text = "![](http://169.254.169.254/latest)"
    fetching = [target(name) for name, profile in load_profiles().items() if profile.fetches_from_text]
    assert fetching
    for to in (*fetching, HOSTED):
        engine = replace(to, permits=Permits(reach=reach))
        found = {
            refused and refused.message
            for known in ({"plain": True}, {"without_parts": True}, {})
            for refused in [refusal(chat(prompt=ChatPrompt(({"role": "user", "content": text},), **known)), engine)]
        }
        assert len(found) == 1
        assert (None in found) is (to is HOSTED)
