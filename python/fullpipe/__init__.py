"""fullpipe: a congestion-control laboratory.

Data flows one way through this package: `scenario` -> `engines` -> `recording` -> `metrics` ->
`report`. `models` predict without a run, `experiments` repeat the papers', `flent` exchanges
recordings with Flent.
"""

from importlib import metadata

__version__ = metadata.version("fullpipe")
