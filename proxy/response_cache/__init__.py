"""The response cache: responses that are sent again to equal requests, and equal requests that share one call."""
