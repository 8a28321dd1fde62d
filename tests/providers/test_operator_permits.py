"""What the operator lets clients send."""

from providers.operator_permits import NO_MEDIA, NO_PERMITS, Media


def test_the_nearer_word_counts_setting_by_setting() -> None:
    team, deployment = Media(frozenset({"data"})), Media(frozenset({"gs"}), allow_private=True)
    assert team.over(deployment) == Media(frozenset({"data"}), allow_private=True)
    assert NO_MEDIA.over(deployment) == deployment
    assert Media(allow_private=False).over(deployment) == Media(frozenset({"gs"}), allow_private=False)


def test_an_empty_list_is_a_word_too() -> None:
    assert Media(frozenset()).over(Media(frozenset({"gs"}))).schemes == frozenset()


def test_nothing_is_allowed_unasked() -> None:
    assert (NO_PERMITS.fields, NO_PERMITS.headers, NO_PERMITS.media) == (frozenset(), (), NO_MEDIA)
    assert NO_PERMITS.reach("10.0.0.9") == "unknown"
