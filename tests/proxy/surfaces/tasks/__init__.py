"""The client APIs of embeddings and rankings, as bytes and values."""
