"""Strategies for regular expressions of the common subset, and for texts near them. No particular cases."""

from hypothesis import strategies as st

LETTERS = "ab01-. "

_CLASSES = ["[ab]", "[^ab]", "[0-1]", r"[\d.]", r"[^\d-]", r"[^\W]", "[a-]", "[^é]"]
_ATOMS = st.sampled_from(
    ["a", "b", "0", "é", r"\.", r"\-", ".", r"\d", r"\w", r"\s", r"\D", r"\W", r"\S", r"\x61", *_CLASSES]
)
_COUNTS = st.sampled_from(["?", "*", "+", "??", "*?", "{0}", "{2}", "{0,2}", "{1,}", "{1,3}", "{2}?"])


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    grouped = inner.map(lambda body: f"({body})") | inner.map(lambda body: f"(?:{body})")
    counted = st.builds(lambda body, count: body + count, grouped | _ATOMS, _COUNTS)
    listed = st.lists(inner, min_size=1, max_size=3)
    return grouped | counted | listed.map("".join) | listed.map("|".join).map(lambda body: f"({body})")


# A single atom may become a branch. Two adjacent atoms stay separate, since none ends in text that a count could
# follow.
patterns = st.recursive(_ATOMS | st.just(""), _grown, max_leaves=6)
"""Patterns that Python reads as the gateway does, for ASCII texts."""

texts = st.text(st.sampled_from(LETTERS), max_size=5)
"""Short texts that such patterns may match."""

strange = st.text(st.sampled_from("a0 -é٣\xa0\x1f\u2028\ufeff_„"), max_size=4)
"""Texts whose characters belong to different classes in different dialects."""
