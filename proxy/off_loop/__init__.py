"""Work that must not hold up the event loop: in threads, and in processes that may be ended."""
