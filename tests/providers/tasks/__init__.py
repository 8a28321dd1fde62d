"""Embeddings and rankings as values, without a network."""
