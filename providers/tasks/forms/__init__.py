"""The wire forms of embeddings and rankings, a file for each vendor or family, and the calls of a request."""
