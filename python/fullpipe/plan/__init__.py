"""Scenarios resolved to the integers that engines read."""
