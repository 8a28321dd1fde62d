"""What is refused for the gateway's own sake: admission limits, memory, event loop lag, queue of starts."""
