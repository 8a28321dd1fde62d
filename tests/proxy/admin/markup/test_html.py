"""Every text is escaped in one function, whatever its origin."""

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from proxy.admin.markup.html import Markup, element, enclosed, escaped, joined, start_tag
from tests.support.looped import looped


class Reader(HTMLParser):
    """Collects the elements and the text of a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, list[tuple[str, str | None]]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, attrs))

    def handle_data(self, data: str) -> None:
        self.text += data


def read(markup: str) -> Reader:
    reader = Reader()
    reader.feed(markup)
    reader.close()
    return reader


@looped(
    ("text", "shown"),
    [
        ("plain ä 字", "plain ä 字"),
        ("<script>alert('&\")</script>", "&lt;script&gt;alert(&#39;&amp;&quot;)&lt;/script&gt;"),
        ("a\x00b\x1b[31mc\x7f\x9b", "a\ufffdb\ufffd[31mc\ufffd\ufffd"),
        ("a\u202eb\u2066c\u200fd\u061c", "a\ufffdb\ufffdc\ufffdd\ufffd"),
        ("\udcff\ud800", "\ufffd\ufffd"),
        ("a\tb\nc", "a\tb\nc"),
    ],
)
def test_what_could_be_taken_for_markup_or_for_another_text_is_escaped(text: str, shown: str) -> None:
    assert escaped(text) == shown
    escaped(text).encode()


def test_an_element_has_its_attributes_and_its_children() -> None:
    inner = element("b", "x & y")
    made = element("a", "1 < 2 ", inner, href='?q="><i>', class_="n", aria_label="l", hidden=True, id=False)
    assert made == ('<a href="?q=&quot;&gt;&lt;i&gt;" class="n" aria-label="l" hidden>1 &lt; 2 <b>x &amp; y</b></a>')
    assert element("input", name="q", type="search") == '<input name="q" type="search">'
    assert element("br") == "<br>"


def test_parts_are_markup_only_where_the_page_made_them() -> None:
    assert joined([element("b", "x"), "<b>"]) == "<b>x</b>&lt;b&gt;"
    row = enclosed(start_tag("td", role="cell"), "<b>", Markup("</td>"))
    assert row == '<td role="cell">&lt;b&gt;</td>'


@given(st.text(alphabet=st.characters(), max_size=60))
def test_no_text_becomes_an_element_or_ends_an_attribute(text: str) -> None:
    made = element("td", text, title=text)
    found = read(made)
    assert [tag for tag, _ in found.elements] == ["td"]
    assert [name for name, _ in found.elements[0][1]] == ["title"]
    made.encode()
