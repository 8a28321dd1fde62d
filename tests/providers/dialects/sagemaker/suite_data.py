"""The checks of sent bodies, the fixture sets and the benchmark streams of the SageMaker dialect."""

from collections.abc import Mapping
from dataclasses import replace

from providers.framing.parse_aws_eventstream import encode
from tests.bench.streams import LONG_CHAT, LONG_TEXT, WRAPPED_TIMES, Framed, Stream
from tests.contracts.fixture_sets import NO_CALLS, NO_FILTER, FixtureSet
from tests.contracts.judged_by import JudgedBy
from tests.providers.dialects.kit import chat_request, target_of, text_request
from tests.providers.dialects.openai.suite_data import FLAG, OPENAI_FORM, OPENAI_STREAMS, OPENAI_WHOLE, VLLM
from tests.providers.dialects.tgi.suite_data import TGI_FORM, TGI_STREAMS

_AMAZON = "https://runtime.sagemaker.eu-west-1.amazonaws.com"


def _part(data: bytes) -> bytes:
    headers = {":event-type": "PayloadPart", ":content-type": "application/octet-stream", ":message-type": "event"}
    return encode(headers, data)


def _parts(data: bytes) -> bytes:
    """Put a container's stream into Amazon's frames, cut at positions within events."""
    return b"".join(_part(data[start : start + 199]) for start in range(0, len(data), 199))


JUDGES: Mapping[str, tuple[JudgedBy, ...]] = {
    "sagemaker": (replace(VLLM, elsewhere={"model": "model"}),),
    "sagemaker_tgi": (JudgedBy(completions="tgi.sdk_types", beyond={"stream": FLAG}),),
}

FIXTURE_SETS: Mapping[str, FixtureSet] = {
    "sagemaker": FixtureSet(
        target_of("sagemaker", base_url=_AMAZON),
        chat_request(),
        OPENAI_WHOLE,
        OPENAI_STREAMS,
        (424, "sagemaker/errors/error_424_context.json"),
        framed=_parts,
    ),
    "sagemaker_tgi": FixtureSet(
        target_of("sagemaker_tgi", base_url=_AMAZON),
        text_request(),
        TGI_STREAMS,
        TGI_STREAMS,
        (424, "sagemaker/errors/error_424_context.json"),
        cannot={**NO_CALLS, "filtered": NO_FILTER},
        framed=_parts,
    ),
}

STREAMS: Mapping[str, Stream] = {
    "sagemaker": Stream("sagemaker", LONG_CHAT, Framed(OPENAI_FORM, _part), WRAPPED_TIMES),
    "sagemaker_tgi": Stream("sagemaker_tgi", LONG_TEXT, Framed(TGI_FORM, _part), WRAPPED_TIMES),
}
