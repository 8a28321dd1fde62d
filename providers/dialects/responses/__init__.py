"""OpenAI's Responses API, for clients that speak it themselves."""
