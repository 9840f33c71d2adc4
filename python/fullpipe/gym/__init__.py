"""Reinforcement learning over the simulator (`pip install 'fullpipe[gym]'`).

Must never know how an agent learns.
"""

from __future__ import annotations

import gymnasium

from fullpipe.gym.environment import CongestionEnv
from fullpipe.gym.episode import Document
from fullpipe.gym.observation import FEATURES, Floats
from fullpipe.gym.rewards import FlowStep, default_reward

__all__ = ["FEATURES", "CongestionEnv", "Document", "Floats", "FlowStep", "default_reward"]

gymnasium.register("fullpipe/Congestion-v0", entry_point="fullpipe.gym:CongestionEnv")
