"""What is known of models by their names, wherever they are hosted."""
