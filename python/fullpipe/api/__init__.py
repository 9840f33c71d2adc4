"""The Python API for programs and notebooks."""
