"""fullpipe: a congestion-control laboratory.

Data flows one way through this package: `scenario` -> `engines` -> `recording` -> `metrics` ->
`report`. `models` predict without a run, `experiments` repeat the papers', `flent` exchanges
recordings with Flent.
"""

from fullpipe._native import __version__

__all__ = ["__version__"]
