"""Emulation of features that a vendor lacks: several calls for one request, and post-processing of responses."""
