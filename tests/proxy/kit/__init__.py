"""Rigs, clients and fakes that tests of several rooms of `proxy` share."""
