"""Congestion controls: names and parameters, the contract as a Python class, users' files."""
