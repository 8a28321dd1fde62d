"""What models do besides generating text."""
