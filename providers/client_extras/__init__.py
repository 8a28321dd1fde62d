"""What clients may send beyond the unified fields: extra members and headers, and addresses of media."""
