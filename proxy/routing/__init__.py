"""The compiled configuration, and the resolution of a model string to ordered targets. It does no I/O."""
