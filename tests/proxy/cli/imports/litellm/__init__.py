"""Tests of proxy.cli.imports.litellm."""
