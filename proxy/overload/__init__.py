"""Overload protection: admission limits, memory, event loop lag, and the queue of requests that wait to start."""
