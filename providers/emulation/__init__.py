"""What a vendor lacks, made by the gateway: several calls for one request, and answers finished afterwards."""
