"""Tests of `config/sections`."""
