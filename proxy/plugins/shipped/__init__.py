"""Plugins that come with the gateway, and show how one is written: they use nothing but `proxy.plugins.api`."""
