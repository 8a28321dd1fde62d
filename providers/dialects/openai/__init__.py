"""The OpenAI family: completions and chat completions, as each vendor's profile has them."""
