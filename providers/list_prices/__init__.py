"""The vendors' list prices, which are packaged in `list_prices.jsonl`, and their lookup by URL and model."""
