"""The hunt: finds a path on which a congestion control does worst, and simplifies it."""
