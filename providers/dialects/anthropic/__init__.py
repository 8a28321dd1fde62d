"""Anthropic's Messages API, also for Claude on Vertex AI."""
