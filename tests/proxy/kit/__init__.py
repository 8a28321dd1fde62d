"""Rigs, clients and fakes that tests of several packages of `proxy` share."""
