"""The client APIs of embeddings and rankings: from bytes to typed requests and back. Pure."""
