"""A committed stream on its way from the vendor to the client."""
