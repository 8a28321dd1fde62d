"""The routing table compiled, and the way from a model string to ordered targets. Pure."""
