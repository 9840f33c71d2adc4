"""What a congestion control is worth: items that run scenarios and hold them against something."""
