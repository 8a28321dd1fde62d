"""The mock's errors, in OpenAI's shape.

Texts, types and codes follow OpenAI's error guide and OpenAPI 2.3.0 as of November 2026.
"""

from providers.json_types import JsonObject

INVALID = "invalid_request_error"
SERVER = "server_error"


class MockError(Exception):
    """An HTTP error of the mock: its status, and the fields of OpenAI's `error` object."""

    def __init__(
        self, status: int, message: str, kind: str = INVALID, code: str | None = None, param: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.kind = kind
        self.code = code
        self.param = param

    def body(self) -> JsonObject:
        """Return the body of the response."""
        return {"error": {"message": self.message, "type": self.kind, "param": self.param, "code": self.code}}


class Unsupported(ValueError):
    """A schema or pattern for which the mock cannot generate a text, with the reason."""


def bad_request(param: str | None, message: str) -> MockError:
    """Return the error of an invalid request."""
    return MockError(400, message, param=param)


_RATE_LIMITED = (
    "Rate limit reached for requests per minute (RPM): Limit 3, Used 3, Requested 1. Please try again in 1s."
)
_WRONG_KEY = "Incorrect API key provided: sk-mock. You can find your API key at https://mock.invalid/api-keys."
_OVERLOADED = "The engine is currently overloaded, please try again later."
_SERVER_ERROR = "The server had an error while processing your request. Sorry about that!"

_ERRORS: dict[int, tuple[str, str, str | None, str | None]] = {
    400: ("The request is not valid.", INVALID, "invalid_value", None),
    401: (_WRONG_KEY, INVALID, "invalid_api_key", None),
    403: ("Your account may not use this model.", INVALID, "model_not_allowed", None),
    404: ("The model does not exist or you do not have access to it.", INVALID, "model_not_found", "model"),
    408: ("The request took too long.", SERVER, "request_timeout", None),
    409: ("The resource was changed by another request.", INVALID, "conflict", None),
    413: ("The request is too large.", INVALID, "request_too_large", None),
    422: ("The request could not be processed.", INVALID, "invalid_value", None),
    429: (_RATE_LIMITED, "requests", "rate_limit_exceeded", None),
    500: (_SERVER_ERROR, SERVER, None, None),
    502: ("Bad gateway.", SERVER, None, None),
    503: (_OVERLOADED, SERVER, "overloaded", None),
    504: ("The model did not answer in time.", SERVER, "timeout", None),
    529: ("Overloaded", "overloaded_error", "overloaded", None),
}

STATUSES = frozenset(_ERRORS)
"""The statuses that the word `error-<status>` of a model's name may contain."""

RETRY_AFTER = {429: "1", 503: "1"}
"""By status: the value of the `retry-after` header, in seconds."""


def by_status(status: int) -> MockError:
    """Return the usual error of one of STATUSES. The error 500 is also the one that ends a broken stream."""
    return MockError(status, *_ERRORS[status])


def overflow(prompt_tokens: int) -> MockError:
    """Return the error of a prompt that exceeds the context window, with numbers in OpenAI's wording."""
    message = (
        f"This model's maximum context length is {max(1, prompt_tokens - 1)} tokens. However, your messages resulted "
        f"in {prompt_tokens} tokens. Please reduce the length of the messages."
    )
    return MockError(400, message, code="context_length_exceeded", param="messages")
