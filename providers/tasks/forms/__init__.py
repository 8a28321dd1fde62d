"""The wire forms of embeddings and rerank, with one file for each vendor or family, and the calls of a request."""
