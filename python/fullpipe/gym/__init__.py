"""Reinforcement learning over the simulator (`pip install 'fullpipe[gym]'`).

Must never know how an agent learns.
"""

from __future__ import annotations

import gymnasium

from fullpipe.gym.environment import CongestionEnv
from fullpipe.gym.episode import Document
from fullpipe.gym.observation import FEATURES, Floats
from fullpipe.gym.parallel import CongestionParallelEnv
from fullpipe.gym.paths import PathSet, random_path
from fullpipe.gym.rewards import FlowStep, default_reward, flow_reward
from fullpipe.gym.vector import CongestionVectorEnv

__all__ = [
    "FEATURES", "CongestionEnv", "CongestionParallelEnv", "CongestionVectorEnv", "Document",
    "Floats", "FlowStep", "PathSet", "default_reward", "flow_reward", "random_path",
]  # fmt: skip

gymnasium.register(
    "fullpipe/Congestion-v0", entry_point="fullpipe.gym:CongestionEnv",
    vector_entry_point="fullpipe.gym:CongestionVectorEnv",
)  # fmt: skip
