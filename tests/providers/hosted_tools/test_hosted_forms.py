"""The forms of hosted tools cover exactly the styles that profiles name."""

from collections.abc import Iterator

from providers.hosted_tools.hosted_forms import FORMS
from providers.hosted_tools.hosted_tool import is_hosted
from providers.profile import HostedKind, HostedStyle
from providers.profiles.load_profiles import load_profiles


def used() -> Iterator[tuple[HostedKind, HostedStyle]]:
    for row in load_profiles().values():
        for profile in (row, *(each for _, each in row.overrides)):
            yield from profile.hosted.items()


def test_profiles_name_forms_that_there_are_and_all_of_them() -> None:
    assert set(used()) == {(kind, style) for kind, forms in FORMS.items() for style in forms}


def test_a_form_is_a_tool_that_is_known_or_a_part_of_the_body_without_a_choice_of_its_own() -> None:
    for forms in FORMS.values():
        for style, form in forms.items():
            if form.tool is None:
                assert form.forced_use != "named" or form.body is not None, style
            else:
                assert is_hosted(form.tool), style
                assert (form.forced_use == "named") == (form.choice is not None), style
