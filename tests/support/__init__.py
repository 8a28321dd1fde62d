"""What several tests share: fake vendors, clocks and builders. Never an assertion of its own."""
