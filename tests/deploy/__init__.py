"""The files that are shipped to deploy the gateway, checked by the tools that read them."""
