"""Congestion controls: names and parameters, the contract as a class of Python, users' files."""
