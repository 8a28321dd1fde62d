"""Which signature matches each upstream's message: exactly one, or the first of the generic signatures."""

from providers.context_overflow_patterns import CATCH_ALL, NOT_ABOUT_SIZE, SIGNATURES
from tests.providers.overflows import NOT_OVERFLOWS, SAMPLES, Sample
from tests.support.looped import looped

LAST = {signature.name for signature in CATCH_ALL}
every_sample = looped("sample", SAMPLES, ids=lambda sample: sample.text[:60])


def matching(text: str) -> list[str]:
    return [signature.name for signature in (*SIGNATURES, *CATCH_ALL) if signature.pattern.search(text)]


@every_sample
def test_a_message_matches_its_own_signature_and_besides_only_words_of_all(sample: Sample) -> None:
    first, *more = matching(sample.text)
    assert first == sample.name
    assert set(more) <= LAST
    assert not NOT_ABOUT_SIZE.search(sample.text)


@every_sample
def test_a_message_is_known_however_it_is_wrapped(sample: Sample) -> None:
    wrapped = f'{{"message": "ValidationException: {sample.text.upper()} (parameter=input_tokens, value=7)"}}'
    assert matching(wrapped)[0] == sample.name


def test_every_signature_has_a_sample() -> None:
    names = [signature.name for signature in (*SIGNATURES, *CATCH_ALL)]
    assert len(names) == len(set(names))
    assert {sample.name for sample in SAMPLES} == set(names)


@looped("text", NOT_OVERFLOWS)
def test_what_is_not_about_size_matches_nothing_or_speaks_of_a_rate(text: str) -> None:
    assert not matching(text) or NOT_ABOUT_SIZE.search(text)
