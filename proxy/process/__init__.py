"""The process around the gateway: its assembly, reloads, observation and shutdown."""
