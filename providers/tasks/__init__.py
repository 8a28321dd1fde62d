"""What models do besides generating text: embeddings and rankings, as values and as what all wire forms share."""
