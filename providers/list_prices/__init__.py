"""The vendors' list prices, which ship in `list_prices.jsonl`, and their lookup by address and model."""
