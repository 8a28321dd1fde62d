"""What this process knows of each deployment: circuit breaker, concurrency limit, queue, recent failures."""
