"""Access to the operator's page: programs use a Bearer token, browsers the password that they prompt for."""

from base64 import b64encode

from pydantic import SecretStr

from proxy.admin.admin_token import CHALLENGE_LINES, CHALLENGES, MOST_HEADER, AdminToken
from tests.support.looped import looped

TOKEN = "admin-tökén:with a colon"
GUARD = AdminToken(SecretStr(TOKEN))


def basic(user: str, password: str, scheme: str = "Basic") -> str:
    return f"{scheme} {b64encode(f'{user}:{password}'.encode()).decode()}"


@looped(
    "given",
    [
        *(f"{scheme} {TOKEN}" for scheme in ("Bearer", "bearer", "BEARER")),
        *(basic("", TOKEN), basic("operator", TOKEN), basic("x", TOKEN, "basic")),
    ],
)
def test_the_token_is_taken_in_either_form(given: str) -> None:
    assert GUARD.permits(given)


@looped(
    "given",
    [
        *("", "Basic", "Basic ", "Basic !!!", "Basic =", TOKEN, f"Basic {TOKEN}", f"bearer{TOKEN}", "Bearer \udcff"),
        *(basic("", ""), basic(TOKEN, ""), basic("", TOKEN + "x"), basic("", "Bearer " + TOKEN)),
        "Basic " + b64encode(TOKEN.replace(":", "").encode()).decode(),
        "Basic " + b64encode(b"\xff:\xfe").decode(),
        "Basic " + "A" * (4 * MOST_HEADER),
    ],
)
def test_anything_else_is_not(given: str) -> None:
    assert not GUARD.permits(given)


@looped("given", ["", "Bearer wrong", basic("", "wrong")])
def test_without_a_token_everybody_is_let_in(given: str) -> None:
    assert AdminToken(None).permits(given)


def test_who_is_not_let_in_is_asked_in_both_forms() -> None:
    assert "".join(f"WWW-Authenticate: {each}\r\n" for each in CHALLENGES) == CHALLENGE_LINES
    assert {each.split()[0] for each in CHALLENGES} == {"Basic", "Bearer"}
