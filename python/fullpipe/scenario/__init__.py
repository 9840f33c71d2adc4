"""What a user may write: scenarios and their parts, checked key by key."""
