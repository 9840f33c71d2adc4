"""Tools for the author of a congestion control: a skeleton, checks, costs. Runs engines."""
