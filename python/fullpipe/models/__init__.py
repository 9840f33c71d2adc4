"""Theories that predict metrics from a scenario without running it: a steady state of BBRv1, a
fluid model of Reno, CUBIC, BBRv1 and BBRv2, and two of BBRv3. Derivations:
docs/background/models.md.
"""

from fullpipe.models.domain import Caution, Contest
from fullpipe.models.extended import ExtendedRun, contest_run, run_extended
from fullpipe.models.fluid import FluidResult, FluidRun, published_run, run_fluid
from fullpipe.models.observed import Observation, Panel, read_observed
from fullpipe.models.predict import Prediction, predict
from fullpipe.models.share import Share, predict_share
from fullpipe.models.steady import bbr1_share
from fullpipe.models.steady3 import bbr3_share
from fullpipe.models.validate import Validation, validate

__all__ = [
    "Caution",
    "Contest",
    "ExtendedRun",
    "FluidResult",
    "FluidRun",
    "Observation",
    "Panel",
    "Prediction",
    "Share",
    "Validation",
    "bbr1_share",
    "bbr3_share",
    "contest_run",
    "predict",
    "predict_share",
    "published_run",
    "read_observed",
    "run_extended",
    "run_fluid",
    "validate",
]
