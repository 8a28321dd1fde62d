"""Anthropic's Messages API as clients speak it. Pure."""
