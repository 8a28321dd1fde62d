"""Traces of requests and metrics by OTLP: built and sent in a thread of their own, after the fact."""
