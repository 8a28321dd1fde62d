"""Traces of requests and metrics by OTLP. They are built and sent in a separate thread, after a request has ended."""
