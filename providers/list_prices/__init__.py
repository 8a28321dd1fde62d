"""The vendors' list prices, which ship with the gateway in `list_prices.jsonl`, and their lookup by address and model."""
