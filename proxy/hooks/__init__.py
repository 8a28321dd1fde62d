"""Hooks: how optional features take part in requests, which the gateway runs without an import of any of them."""
