"""Reinforcement learning over the simulator (`pip install 'fullpipe[gym]'`).

Must never know how an agent learns.
"""

from __future__ import annotations

import gymnasium

from fullpipe.congestion.policy import FEATURES, Layer
from fullpipe.gym.environment import CongestionEnv
from fullpipe.gym.episode import Document
from fullpipe.gym.exporting import export
from fullpipe.gym.observation import Floats
from fullpipe.gym.parallel import CongestionParallelEnv
from fullpipe.gym.paths import PathSet, random_path
from fullpipe.gym.rewards import FlowStep, default_reward, flow_reward
from fullpipe.gym.vector import CongestionVectorEnv

__all__ = [
    "FEATURES",
    "CongestionEnv",
    "CongestionParallelEnv",
    "CongestionVectorEnv",
    "Document",
    "Floats",
    "FlowStep",
    "Layer",
    "PathSet",
    "default_reward",
    "export",
    "flow_reward",
    "random_path",
]

gymnasium.register(
    "fullpipe/Congestion-v0",
    entry_point="fullpipe.gym:CongestionEnv",
    vector_entry_point="fullpipe.gym:CongestionVectorEnv",
)
