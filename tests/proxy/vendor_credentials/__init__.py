"""Tests of `proxy/vendor_credentials`."""
