"""watsonx.ai: text generation and chat."""
