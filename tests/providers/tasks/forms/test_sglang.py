"""SGLang's rankings."""

import pytest

from providers.completion import Usage
from providers.failure import UpstreamError
from tests.providers.tasks.kit import at, body_of, places, rank, ranked, url_of
from tests.support.looped import looped

SCORES = b'[{"score":0.9,"index":1,"meta_info":%b},{"score":-3.5,"index":0,"meta_info":{"prompt_tokens":4}}]'


def test_documents_are_sent_and_not_wanted_back() -> None:
    assert body_of(rank("a", "b", top_n=1, unknown={"instruct": "i"}), at("sglang")) == {
        **{"model": "tiny", "query": "which", "documents": ["a", "b"]},
        **{"return_documents": False, "instruct": "i"},
    }
    assert url_of(rank(), at("sglang")) == "http://localhost:30000/v1/rerank"


@looped(
    ("meta", "usage"), [(b'{"prompt_tokens":3}', Usage(7, 0)), (b"{}", None), (b"null", None), (b'{"id":"x"}', None)]
)
def test_a_bare_list_is_read_with_the_usage_of_all_documents(meta: bytes, usage: Usage | None) -> None:
    ranking = ranked(rank("a", "b"), at("sglang"), SCORES % meta)
    assert places(ranking) == [(1, 0.9), (0, -3.5)]
    assert (ranking.usage == usage) if usage else (ranking.usage is None or ranking.usage.estimated)


@looped("body", [b"{}", b'[{"index":0}]', b"[1]", b"null"])
def test_what_is_no_list_of_scores_is_malformed(body: bytes) -> None:
    with pytest.raises(UpstreamError):
        ranked(rank(), at("sglang"), body)
