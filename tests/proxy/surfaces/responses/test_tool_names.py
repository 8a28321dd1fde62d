"""One name for each tool of a namespace, and the mapping back."""

from hypothesis import given
from hypothesis import strategies as st

from proxy.surfaces.responses.request_draft import MAX_NAME, NamespacedName, NamespaceNames


def test_a_tool_of_a_namespace_has_both_names_and_never_that_of_a_plain_tool() -> None:
    names = NamespaceNames()
    assert names.joined("ns", "a") == "ns__a"
    assert names.joined("ns", "a") == "ns__a"
    assert names.origins() == {"ns__a": NamespacedName("ns", "a")}
    names = NamespaceNames(frozenset({"ns__a"}))
    assert names.joined("ns", "a") != "ns__a"
    assert names.joined("ns", "a") == NamespaceNames(frozenset({"ns__a"})).joined("ns", "a")


def test_names_that_read_alike_are_told_apart() -> None:
    names = NamespaceNames()
    assert names.joined("a__b", "c") == "a__b__c"
    assert names.joined("a", "b__c") != "a__b__c"
    assert len(names.origins()) == 2


@given(st.lists(st.tuples(st.text(max_size=80), st.text(min_size=1, max_size=80)), max_size=20))
def test_every_name_is_short_and_leads_back(tools: list[tuple[str, str]]) -> None:
    names = NamespaceNames()
    for namespace, name in tools:
        made = names.joined(namespace, name)
        assert len(made) <= MAX_NAME
        assert names.origins()[made] == NamespacedName(namespace, name)


def test_a_thousand_tools_of_long_names_each_have_their_own() -> None:
    names = NamespaceNames()
    assert len({names.joined("n" * 200, f"{'t' * 200}{number}") for number in range(1000)}) == 1000
