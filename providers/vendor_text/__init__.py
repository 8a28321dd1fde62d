"""What a vendor's own words say: whom a failure is to be blamed on, and which of the words may be shown."""
