"""The state of each deployment in this process: circuit breaker, concurrency limit, queue, recent failures."""
