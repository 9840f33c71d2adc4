"""Sweeps: one scenario over axes, run where its cells are missing, kept in one store.

`file` reads what a user wrote, `cells` makes plans of it, `schedule` runs work on an executor,
`worker` runs and measures a chunk of cells, `store` keeps tables. Nothing here judges a result.
"""
