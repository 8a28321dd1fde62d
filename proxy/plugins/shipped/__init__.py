"""Plugins that ship with the gateway. They are also examples: they import only `proxy.plugins.api`."""
