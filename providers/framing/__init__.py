"""Parsers of events in a byte stream: SSE, NDJSON, AWS event streams. Bytes in, events out, whatever the cuts."""
