"""The answer cache: answers that are given again to equal requests, and equal requests that share one call."""
