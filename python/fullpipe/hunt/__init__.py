"""The hunt: the path on which a congestion control does worst, made simple."""
