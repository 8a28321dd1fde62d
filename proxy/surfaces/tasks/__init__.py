"""The client APIs of embeddings and rankings: parses requests and renders responses. Pure."""
