"""What models do besides generating text, as values and as what all wire forms share."""
