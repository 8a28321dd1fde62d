"""Keys, addresses and headers of accounts: no secret is copied, and a remark names each private value."""

from proxy.cli.imports.accounts import Accounts, aws_region, name_of_address, vendor_of_address
from proxy.cli.imports.table_draft import Block, Reference, TableDraft
from tests.proxy.cli.imports.kit import section
from tests.support.looped import looped


def accounts() -> Accounts:
    return Accounts(TableDraft(), lambda text: text.removeprefix("env.") if text.startswith("env.") else None)


def test_one_written_credential_is_one_variable() -> None:
    read = section("a: secret-1\nb: secret-2\nc: secret-1\nd: none\ne: env.OWN\nf: env.not a name\n")
    made = accounts()
    found = [made.secret(read, key, "openai") for key in "abcdef"]
    assert found == [
        Reference("${OPENAI_API_KEY}"),
        Reference("${OPENAI_API_KEY_2}"),
        Reference("${OPENAI_API_KEY}"),
        None,
        Reference("${OWN}"),
        None,
    ]
    assert [problem.path for problem in read.remarks.problems] == ["a", "b", "c", "f"]
    assert "secret-" not in repr(made) + "".join(read.comments)


@looped(
    ("url", "settings"),
    [
        ("https://llm.example.com/", {"base_url": "https://llm.example.com/v1"}),
        ("https://llm.example.com/v1", {"base_url": "https://llm.example.com/v1"}),
        ("http://10.0.0.1:8000", {"base_url": "http://10.0.0.1:8000/v1", "allow_private": True}),
        ("http://vllm:8000", {"base_url": "http://vllm:8000/v1", "allow_private": True}),
        ("http://0.0.0.0:8000", {"base_url": "http://127.0.0.1:8000/v1", "allow_private": True}),
        ("env.BASE", {"base_url": Reference("${BASE}/v1")}),
    ],
)
def test_an_address_is_written_as_a_table_wants_it(url: str, settings: dict[str, object]) -> None:
    assert accounts().address(section(f"u: '{url}'"), "u", "x", "/v1") == settings


@looped("url", ["<your-endpoint>", "ftp://x", "https://u:canary@h", "http://169.254.169.254", "https://h:x"])
def test_what_is_no_address_is_asked_for(url: str) -> None:
    read = section(f"u: '{url}'")
    assert accounts().address(read, "u", "my vendor") == {"base_url": Reference("${MY_VENDOR_BASE_URL}")}
    assert "canary" not in str(read.remarks.problems[0])


def test_no_address_is_none() -> None:
    assert accounts().address(section("a: 1"), "u", "x") == {}


def test_headers_that_a_table_does_not_take_are_told() -> None:
    read = section(
        'User-Agent: plain\nx-kong-route: "Basic canary"\nX-Token: canary\nX-Env: env.E\n'
        "Authorization: canary\nHost: env.H\n"
    )
    assert accounts().headers(read, "v") == {
        "User-Agent": "plain",
        "x-kong-route": Reference("${V_X_KONG_ROUTE}"),
        "X-Token": Reference("${V_X_TOKEN}"),
        "X-Env": Reference("${E}"),
    }
    assert [problem.path for problem in read.remarks.problems] == ["x-kong-route", "X-Token", "Authorization", "Host"]
    assert "canary" not in "".join(read.comments)
    assert accounts().header(section("o: org-1"), "o", "OpenAI-Organization", "v") == "org-1"
    assert accounts().header(section('o: "a\\nb"'), "o", "OpenAI-Organization", "v") is None


def test_parts_of_addresses_and_names_of_roles_are_checked() -> None:
    read = section("a: us-east-1\nb: a/b\nc: env.C\nd: 'arn:aws:iam::123456789012:role/r'\ne: role\n")
    made = accounts()
    assert [made.url_param(read, key) for key in "abc"] == ["us-east-1", None, Reference("${C}")]
    assert [made.role(read, key) for key in "dec"] == ["arn:aws:iam::123456789012:role/r", None, Reference("${C}")]
    assert (aws_region("eu-west-1"), aws_region("EU"), aws_region(None)) == ("eu-west-1", None, None)


def test_accounts_at_aws() -> None:
    made = accounts()
    assert made.aws(None) == {"url_params": Block({"region": Reference("${AWS_REGION}")})}
    assert made.aws("r", profile="p")["credentials"] == Block({"aws": Block({"profile": "p"})})
    read = section("k: canary")
    assert made.aws_keys(read, "k", "gone")
    assert not made.aws_keys(read, "gone")
    assert "AWS_ACCESS_KEY_ID" in made.draft.samples


def test_accounts_at_google() -> None:
    made = accounts()
    assert made.google_file(section("f: /run/key.json"), "f") == {
        "credentials": Block({"google": Block({"file": "/run/key.json"})})
    }
    for text in ("f: '{\"private_key\": 1}'", "f: {private_key: canary}", "f: env.F"):
        read = section(text)
        assert made.google_file(read, "f") == {"credentials": "google"}
        assert len(read.remarks.problems) == 1
    assert made.google_file(section("a: 1"), "f") == {}


@looped(
    ("url", "name"),
    [
        ("https://api.siliconflow.cn/v1", "siliconflow.cn"),
        ("http://localhost:8000", "local-8000"),
        ("http://0.0.0.0:1", "local-1"),
        ("https://api.example.com", "example"),
        ("nonsense", ""),
    ],
)
def test_addresses_have_names(url: str, name: str) -> None:
    assert name_of_address(url) == name


def test_a_vendor_is_named_after_its_address_or_its_variable() -> None:
    assert vendor_of_address("env.X", "FAKE_OPENAI_API_BASE", "openai") == "fake-openai"
    assert vendor_of_address("https://a.b.example.com", None, "openai") == "a-b-example"
    assert vendor_of_address("nonsense", None, "openai") == "openai"


def test_a_credential_that_is_written_out_does_not_take_the_variable_of_another() -> None:
    read = section("a: env.OPENAI_API_KEY\nb: secret-1\nc: env.OPENAI_API_KEY_2\n")
    made = accounts()
    found = [made.secret(read, key, "openai") for key in "abc"]
    assert [str(it.text) for it in found if it] == ["${OPENAI_API_KEY}", "${OPENAI_API_KEY_2}", "${OPENAI_API_KEY_2}"]
    assert [problem.path for problem in read.remarks.problems] == ["b", "c"]
