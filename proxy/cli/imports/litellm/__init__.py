"""Conversion of LiteLLM's configuration and of exports of its database."""
