"""Tasks of models other than generating text: their requests and results, and the code that all wire forms share."""
