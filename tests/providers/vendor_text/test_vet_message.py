"""Vendors' messages made safe to show."""

from hypothesis import given
from hypothesis import strategies as st

from providers.failure import GATEWAY_MESSAGES
from providers.vendor_text.vet_message import MAX_MESSAGE, hide_host, vet
from tests.support.looped import looped

SECRETS = (
    "sk-abcdef0123456789",
    "sk-proj-abcdef_0123-456789",
    "sk-ant-api03-AbCdEf-0123_xyz",
    "fw_3ZabcdefGHIJKL",
    "gsk_abcdefghijkl",
    "ya29.a0Af-one_two-three",
    "xai-abcdefghijkl",
    "hf_abcdefghijkl",
    "nvapi-abcdefghijkl",
    "org-AbCdEfGh123",
    "proj_AbCdEfGh123",
    "AKIAIOSFODNN7EXAMPLE",
    "AIzaSyA-1234567890abcdefghijklmnopqrstu",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    "Bearer abc.def-ghi",
    "bearer 0123456789",
    "sk-12345***********************6789",
    "0123456789abcdef0123456789abcdef",
)
ADDRESSES = (
    "https://user:pass@10.0.0.1:8443/v1/x?key=y",
    "http://vllm-7.internal:8000/v1",
    "postgresql://db/x",
    "10.12.0.7:8000",
    "192.168.1.20",
    "[fe80::1ff:fe23:4567:890a]:8000",
    "2001:db8:85a3::8a2e:370:7334",
    "/usr/lib/python3/site-packages/vllm/engine.py",
    "/home/svc/models/llama.gguf",
    "C:\\Users\\svc\\model.bin",
    "vllm-7.internal:8000",
    "localhost:8080",
    "::1",
    "https://gpu-7.svc.cluster.local/v1",
    "https://vllm-7/v1/chat",
    "https://user:pass@example.com/x",
    "file:///home/svc/x",
    "~/svc/model.bin",
    "/models/svc",
    "/root/svc/x",
    "/mnt/nvme0/svc",
    "/opt/vllm/svc",
    "/data1/svc/llama",
    "/workspace/svc/llama",
    "/v1/svc/engine.py",
    "/foo/svc/engine.py",
    "/foo/.svc/x",
)
SHOWN = (
    "use /v1/responses or set reasoning_effort to 'none'.",
    "(see https://platform.openai.com/docs/guides/reasoning).",
    "Visit https://console.groq.com/settings/limits, then retry.",
    "Manage it using https://openrouter.ai/settings/keys",
    "At /properties/a/items: the type is missing.",
    "Invalid '#/$defs/Node/anyOf/0' and '/tools/0/function/parameters', /messages/1/content/0.",
    "Unknown request URL: POST /v1/chat/completions.",
    "/openai/deployments/x/chat/completions is no path; /api/chat is.",
    "POST /v1beta/models/gemini-2.5-pro:generateContent, /v1/models/gpt-4.1",
    "`/address/street` does not match.",
)


@looped("secret", SECRETS)
@looped("frame", ["{}", "Incorrect API key provided: {}.", "key='{}'", '{{"key": "{}"}}', "({})"])
def test_keys_and_tokens_are_taken_out(secret: str, frame: str) -> None:
    shown = vet(frame.format(secret))
    assert secret not in shown
    assert "[redacted]" in shown
    tail = secret.rpartition(" ")[2]
    assert tail[-6:] not in shown


@looped("address", ADDRESSES)
@looped("frame", ["{}", "could not reach {} in time", "File '{}', line 3", "at {}."])
def test_addresses_and_paths_are_taken_out(address: str, frame: str) -> None:
    shown = vet(frame.format(address))
    assert "[address]" in shown
    assert address not in shown
    for part in ("internal", "10.", "svc", "vllm", "pass", "fe23", "85a3"):
        assert part not in shown


@looped(
    "message",
    [
        "prompt is too long: 200027 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 184915 + 20000 > 204648",
        "messages.0.content: Input should be a valid string",
        "This model's maximum context length is 8192 tokens (9000 > 8192 - 12).",
        "temperature/top_p: use one and/or the other",
        "model 'meta-llama/Llama-3.3-70B-Instruct' does not exist",
        "'accounts/fireworks/models/x' not found",
        "Rate limit reached for gpt-4o in tokens per min (TPM): Limit 30000, Used 29000. Try again in 1.5s.",
        "Version 1.2.3 at 12:30:45 is required: a ratio of 3:2, key: value, disk-usage task-force.",
        "The organization must be verified; ask your key-holder.",
        "Error: std::bad_alloc in ns::inner::call",
        "x :: y, [0]: list, :5 and a[:5], model hf-internal-testing/tiny-random, claude-haiku-4-5-20251001",
    ],
)
def test_ordinary_messages_are_left_alone(message: str) -> None:
    assert vet(message) == message


@looped("message", SHOWN)
def test_paths_of_apis_pointers_and_public_pages_are_left_alone(message: str) -> None:
    assert vet(message) == message


def test_what_stands_around_an_address_stays_and_a_query_goes() -> None:
    assert vet("(at /home/a/b.py), not http://10.0.0.1/x.") == "(at [address]), not [address]."
    page = "https://console.cloud.google.com/apis/x?project=12#key"
    assert vet(f"Enable it at {page}.") == "Enable it at https://console.cloud.google.com/apis/x."
    team = "https://console.x.ai/team/7a5e1234-aaaa-bbbb-cccc-0123456789ab/keys"
    assert vet(team) == "https://console.x.ai/team/[redacted]/keys"


OWN = "https://llm.corp.example.com/v1"


@looped(
    ("text", "base_url", "public", "shown"),
    [
        ("No https://api.openai.com/v1/x.", "https://api.openai.com/v1", "https://api.openai.com/v1", "No [address]."),
        ("API.openai.com:443 is away", "https://api.openai.com/v1", "https://api.openai.com/v1", "[address] is away"),
        (
            "See https://platform.openai.com/docs.",
            *("https://api.openai.com/v1", "https://api.openai.com/v1", "See https://platform.openai.com/docs."),
        ),
        ("at https://gpu7.corp.example.com/x, and corp.example.com", OWN, None, "at [address], and [address]"),
        ("at notcorp.example.com.", OWN, None, "at notcorp.example.com."),
        ("my.openai.azure.com", "https://my.openai.azure.com", "https://{resource}.openai.azure.com", "[address]"),
        ("vllm:8000 runs vllm 0.0.5", "http://vllm:8000/v1", None, "[address] runs vllm 0.0.5"),
        ("vllm 0.0.5", "http://10.0.0.5:8000/v1", "http://localhost:8000/v1", "vllm 0.0.5"),
        ("x", "", None, "x"),
        ("x", "http://[::1", None, "x"),
    ],
)
def test_the_target_s_own_host_is_taken_out(text: str, base_url: str, public: str | None, shown: str) -> None:
    assert hide_host(text, base_url, public) == shown


def test_our_own_words_hold_nothing_that_is_taken_out() -> None:
    assert all(vet(words) == words for words in GATEWAY_MESSAGES.values())


def test_a_message_is_one_line_without_control_characters() -> None:
    assert vet("a\r\nb\x00\x1b[31mc\u2028d\x85e") == "a b [31mc d e"


def test_a_long_message_is_cut() -> None:
    assert vet("x" * MAX_MESSAGE) == "x" * MAX_MESSAGE
    assert vet("x" * (MAX_MESSAGE + 1)) == "x" * (MAX_MESSAGE - 1) + "…"
    assert len(vet("y " * 10**6)) == MAX_MESSAGE


@given(st.text(alphabet=st.characters(), max_size=3000))
def test_every_message_comes_out_short_and_on_one_line(text: str) -> None:
    shown = vet(text)
    assert len(shown) <= MAX_MESSAGE
    assert not any(ord(char) < 32 or 0x7F <= ord(char) <= 0x9F or char in "\u2028\u2029" for char in shown)


@given(st.sampled_from(SECRETS), st.text(max_size=1100), st.text(max_size=20))
def test_a_key_is_found_wherever_it_stands(secret: str, before: str, after: str) -> None:
    assert secret not in vet(f"{before} {secret} {after}")
