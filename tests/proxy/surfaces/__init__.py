"""Tests of proxy.surfaces, one file for each of its modules, and two that cut across: tricky cases and real clients."""
