"""Parsers of events in a byte stream: SSE, NDJSON, AWS event streams. The events do not depend on how the bytes are
split into chunks."""
