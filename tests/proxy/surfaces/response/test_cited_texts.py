"""Citations find the part of the text that they cite, whether it has ended, is open, or is still to come."""

from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.response.cited_texts import CitedTexts
from tests.proxy.surfaces.responses.kit import typed


def cited(start: int, end: int) -> JsonObject:
    return typed("url_citation", url_citation={"url": "u", "start_index": start, "end_index": end})


def flat(start: int, end: int) -> JsonObject:
    return typed("url_citation", url="u", start_index=start, end_index=end)


def part() -> JsonObject:
    return typed("output_text", annotations=list[JsonValue]())


def test_each_goes_to_its_part_with_places_in_it() -> None:
    texts, ended = CitedTexts(), part()
    texts.end(ended, 3)
    texts.wait([cited(1, 2), cited(3, 5), cited(9, 9)])
    assert texts.of_open_part(4) == [flat(0, 2)]
    assert ended["annotations"] == [flat(1, 2)]
    later = part()
    texts.end(later, 4)
    assert texts.settle() == []
    assert later["annotations"] == [flat(6, 6)]


def test_those_without_a_place_are_of_the_open_part_or_the_last_one() -> None:
    file = typed("file", file={"x": 1})
    texts = CitedTexts()
    texts.wait([file])
    assert texts.of_open_part(0) == [typed("file", x=1)]
    texts.wait([file])
    assert texts.settle() == [file]
    ended = part()
    texts.end(ended, 0)
    texts.wait([file])
    assert (texts.settle(), ended["annotations"]) == ([], [typed("file", x=1)])
