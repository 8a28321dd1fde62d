"""The dialects by name, as profiles refer to them."""

from collections.abc import Mapping

from providers.dialect import Dialect
from providers.dialects.openai import OpenAIDialect

DIALECTS: Mapping[str, Dialect] = {"openai": OpenAIDialect()}
