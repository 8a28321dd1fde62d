"""Ollama's own embeddings endpoint, for both of its profiles."""

from providers.completion import Usage
from providers.failure import FailureKind
from tests.providers.tasks.kit import answered, at, body_of, embed, failure_of, numbers, url_of

ANSWER = (
    b'{"model":"nomic-embed-text","embeddings":[[0.010071029,-0.0017594862],[0.1,0.2]],'
    b'"total_duration":14143917,"load_duration":1019500,"prompt_eval_count":8}'
)


def test_both_profiles_ask_the_same_endpoint_and_nothing_is_cut() -> None:
    for profile in ("ollama", "ollama_native"):
        assert url_of(embed(), at(profile)) == "http://localhost:11434/api/embed"
        assert body_of(embed("a"), at(profile)) == {"model": "tiny", "input": ["a"], "truncate": False}
        assert body_of(embed("a", truncate="end"), at(profile))["truncate"] is True


def test_settings_of_its_own_pass() -> None:
    body = body_of(embed("a", unknown={"keep_alive": "5m", "options": {"num_ctx": 512}}), at("ollama_native"))
    assert (body["keep_alive"], body["options"]) == ("5m", {"num_ctx": 512})


def test_vectors_and_tokens_are_read() -> None:
    answer = answered(embed("a", "b"), at("ollama"), ANSWER)
    assert numbers(answer)[0] == [0.010071029, -0.0017594862]
    assert answer.usage == Usage(8, 0)
    assert failure_of(embed("a", "b"), at("ollama"), b'{"embeddings":null}').kind is FailureKind.MALFORMED
