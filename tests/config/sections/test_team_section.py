"""Teams and their keys: the defaults, both spellings of keys, and tags."""

import math

from config.sections.team_section import TeamKey, TeamSection
from tests.config.tables import BASE, complaints, load
from tests.support.looped import looped

TEAMS = f"""\
    version: 1
    vendors: {{v: {{}}}}
    models: {{v/m: {{}}}}
    teams:
      silent: {{keys: ["sha256:{"1" * 64}"], models: ["*"]}}
      told:
        keys: ["sha256:{"2" * 64}"]
        models: ["*"]
        on_unsupported: drop
        context_length_exceeded_behavior: truncate
        inference_extra_params: false
        inference_extra_headers: false
    """
A, B = (f"sha256:{letter * 64}" for letter in "ab")


def team(text: str) -> TeamSection:
    return load(f"{BASE}teams: {{t: {{models: ['*'], {text}}}}}\n").config.teams["t"]


def complaint(text: str) -> str:
    """Return the first complaint about a team's settings, without its line and column."""
    told = complaints(f"{BASE}teams: {{t: {{models: ['*'], {text}}}}}\n")[0]
    return told.partition(" ")[2].removeprefix("teams.t.")


def test_a_team_may_do_everything_unless_it_is_told_otherwise() -> None:
    teams = load(TEAMS).config.teams
    silent, told = teams["silent"], teams["told"]
    assert (silent.on_unsupported, silent.context_length_exceeded_behavior) == (None, None)
    assert (silent.inference_extra_params, silent.inference_extra_headers) == (True, True)
    assert (told.on_unsupported, told.context_length_exceeded_behavior) == ("drop", "truncate")
    assert (told.inference_extra_params, told.inference_extra_headers) == (False, False)
    assert (silent.limits.any, silent.budget, silent.on_limit, silent.tags) == (False, [], "reject", {})


def test_a_bare_digest_is_a_key_without_a_name_or_an_end() -> None:
    (key,) = team(f"keys: ['{A.upper().replace('SHA', 'sha')}']").keys
    assert (key.digest, key.label, key.ends, key.models, key.limits.any) == (A, "aaaaaaaa", math.inf, None, False)


def test_a_key_may_have_a_name_an_end_names_and_limits() -> None:
    written = f"{{hash: '{A}', name: ci, expires: 2027-03-01, models: [openai/*], limits: {{concurrent: 2}}}}"
    (key,) = team(f"keys: [{written}]").keys
    assert (key.digest, key.label, key.models, key.limits.concurrent) == (A, "ci", ["openai/*"], 2)
    assert key.ends == 1_803_945_600.0
    assert (key.digest_key, key.expires_key) == ("hash", "expires")


def test_the_older_spellings_mean_the_same() -> None:
    (older,) = team(f"keys: [{{key: '{A}', not_after: 2027-03-01}}]").keys
    (newer,) = team(f"keys: [{{hash: '{A}', expires: 2027-03-01}}]").keys
    assert (older.digest, older.ends, older.label) == (newer.digest, newer.ends, newer.label)
    assert (older.digest_key, older.expires_key) == ("key", "not_after")


@looped(
    ("text", "told"),
    [
        (f"keys: [{{hash: '{A}', key: '{A}'}}]", "keys.0: key is the older name of hash: keep one of them"),
        (
            f"keys: [{{key: '{A}', expires: 2027-03-01, not_after: 2027-03-01}}]",
            "keys.0: not_after is the older name of expires: keep one of them",
        ),
        ("keys: [{name: ci}]", "keys.0: required key hash is missing"),
        ("keys: [{hash: canary}]", "keys.0.hash: must be sha256: and 64 hex digits; `dragoman key new` makes a key"),
        (f"keys: [{{hash: '{A}', models: []}}]", "keys.0.models: must not be empty"),
        (f"keys: [{{hash: '{A}', limits: {{request: 1}}}}]", "keys.0.limits.request: unknown key"),
        (f"keys: [{{hash: '{A}', until: 2027-03-01}}]", "keys.0.until: unknown key"),
        ("keys: [5]", "keys.0: expected a digest or a mapping, found a number"),
        (f"keys: ['{A}'], tags: {{cost_center: 4711}}", "tags.cost_center: expected text; YAML reads this"),
        (f"keys: ['{A}'], tags: {{a: ''}}", "tags.a: must be 1 to 256 printable characters"),
        (f"keys: ['{A}'], tags: {{a: {'x' * 257}}}", "tags.a: must be 1 to 256 printable characters"),
        (f"keys: ['{A}'], tags: {{'a b': x}}", "tags.a b: the name of a tag must be 1 to 64 letters"),
        (f"keys: ['{A}'], tags: {{{', '.join(f't{n}: x' for n in range(17))}}}", "tags: must be at most 16 tags"),
        (f"keys: ['{A}'], tags: [a]", "tags: expected a mapping, found a list"),
    ],
)
def test_a_mistake_is_told_without_the_value(text: str, told: str) -> None:
    found = complaint(text)
    assert found[: len(told)] == told
    assert "canary" not in found


def test_sixteen_tags_are_kept() -> None:
    longest = "x" * 256
    tags = team(f"keys: ['{A}'], tags: {{{', '.join(f't{n}: {longest}' for n in range(16))}}}").tags
    assert tags == {f"t{n}": longest for n in range(16)}


def test_every_key_is_told_with_its_place() -> None:
    both = TeamSection(keys=[TeamKey(hash=A)], keys_from=[TeamKey(hash=B, name="ci")])
    assert [(kind, index, key.label) for kind, index, key in both.every_key()] == [
        ("keys", 0, "aaaaaaaa"),
        ("keys_from", 0, "ci"),
    ]
