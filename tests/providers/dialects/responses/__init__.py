"""Tests of the Responses API's dialect."""
