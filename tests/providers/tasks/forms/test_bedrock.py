"""Bedrock's Rerank."""

import botocore.session
import pytest
from botocore.validate import ParamValidator

from providers.failure import UpstreamError
from tests.providers.tasks.kit import at, body_of, places, rank, ranked, refusal_of, url_of

EU = at("bedrock", "cohere.rerank-v3-5:0", base_url="https://bedrock-runtime.eu-west-1.amazonaws.com")
ANSWER = b'{"results":[{"index":1,"relevanceScore":0.8},{"index":0,"relevanceScore":0.2}]}'


def test_it_is_an_operation_of_the_agents_runtime() -> None:
    assert url_of(rank(), EU) == "https://bedrock-agent-runtime.eu-west-1.amazonaws.com/rerank"
    assert body_of(rank("x", top_n=1), EU) == {
        "queries": [{"type": "TEXT", "textQuery": {"text": "which"}}],
        "sources": [{"type": "INLINE", "inlineDocumentSource": {"type": "TEXT", "textDocument": {"text": "x"}}}],
        "rerankingConfiguration": {
            "type": "BEDROCK_RERANKING_MODEL",
            "bedrockRerankingConfiguration": {
                "modelConfiguration": {"modelArn": "arn:aws:bedrock:eu-west-1::foundation-model/cohere.rerank-v3-5:0"},
                "numberOfResults": 1,
            },
        },
    }


@pytest.mark.parametrize(("region", "partition"), [("cn-north-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov")])
def test_the_arn_has_the_region_s_partition(region: str, partition: str) -> None:
    target = at("bedrock", "m", base_url=f"https://bedrock-runtime.{region}.amazonaws.com")
    assert f"arn:{partition}:bedrock:{region}::foundation-model/m" in str(body_of(rank(), target))


def test_an_arn_of_the_table_goes_as_it_is_and_elsewhere_one_is_needed() -> None:
    own = at("bedrock", "arn:aws:bedrock:eu-west-1::foundation-model/x", base_url="https://vpce.example.com")
    assert "arn:aws:bedrock:eu-west-1::foundation-model/x" in str(body_of(rank(), own))
    assert refusal_of(rank(), at("bedrock", "m", base_url="https://vpce.example.com")).param == "model"


def test_the_answer_is_read_and_a_page_of_it_is_none() -> None:
    assert places(ranked(rank("x", "y"), EU, ANSWER)) == [(1, 0.8), (0, 0.2)]
    with pytest.raises(UpstreamError):
        ranked(rank("x", "y"), EU, ANSWER.replace(b"]}", b'],"nextToken":"t"}'))


def test_the_service_s_own_model_takes_what_goes_out() -> None:
    model = botocore.session.get_session().get_service_model("bedrock-agent-runtime")
    assert model.signing_name == "bedrock"
    operation = model.operation_model("Rerank")
    report = ParamValidator().validate(body_of(rank("x", "y", top_n=1), EU), operation.input_shape)
    assert not report.has_errors(), report.generate_report()
    assert operation.http == {"method": "POST", "requestUri": "/rerank", "responseCode": 200}
