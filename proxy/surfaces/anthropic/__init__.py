"""Anthropic's Messages API as an API for clients. Pure."""
