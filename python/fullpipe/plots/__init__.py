"""Charts and their renderers."""
