"""From the bytes of a client's request to a `UnifiedRequest`. Pure."""
