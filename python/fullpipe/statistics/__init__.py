"""Statistics of comparisons. SciPy and statsmodels do the mathematics; this package says what a
number stands for, tests what a test assumes, and keeps pseudo-replication marked.

`by_run` (or, explicitly, `pseudo_replicates`) makes groups; `compare_groups` runs every test.

Import its modules by their names: loading SciPy and statsmodels takes a second and 150 MB, which a
report without statistics does not need.
"""
