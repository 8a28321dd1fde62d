"""The process around the gateway: assembled, reloaded, observed and shut down here."""
