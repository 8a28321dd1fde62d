"""SGLang's own `/generate`."""
