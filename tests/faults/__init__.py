"""Every fault of the failure model, shown against the whole gateway."""
