"""What gateways that share a Redis tell each other. No request ever waits for it."""
