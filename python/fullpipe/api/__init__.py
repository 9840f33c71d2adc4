"""What programs and notebooks use."""
