"""State that gateways share through Redis. Requests wait for it only briefly or not at all."""
