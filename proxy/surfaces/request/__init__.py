"""Parses the bytes of a client's request into a `UnifiedRequest`. Pure."""
