"""Work that must not block the event loop: in threads, and in processes that can be ended."""
