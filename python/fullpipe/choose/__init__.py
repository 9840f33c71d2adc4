"""Ranks queue disciplines with congestion controls for one path."""
