"""Guided decoding: schemas, patterns and grammars in each engine's form, and checks of responses."""
