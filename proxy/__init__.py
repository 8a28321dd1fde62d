"""The running gateway, which joins `config` and `providers`. It contains no wire format and no vendor's name."""
