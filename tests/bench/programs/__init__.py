"""What is measured: this gateway, plain proxies, and other gateways."""
