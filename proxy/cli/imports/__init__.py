"""Configurations written from another gateway's configuration."""
