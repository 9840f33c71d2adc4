"""The search for the constants of a congestion control that serve an objective best."""
