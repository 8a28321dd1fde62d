"""The running gateway, which joins `config` and `providers`. Never a wire format or a vendor's name."""
