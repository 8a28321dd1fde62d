"""Every fault of the failure model, against the whole gateway."""
