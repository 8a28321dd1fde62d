"""The measured programs: this gateway, plain proxies, and other gateways."""
