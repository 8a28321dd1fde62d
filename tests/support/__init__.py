"""Fake vendors, running gateways, engines and other parts that tests of several folders share."""
