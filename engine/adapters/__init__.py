"""Rewards in the shapes that trainers call: one small module a trainer (README.md says how each is plugged in).

All of them take their rewards from a `source`: the URL of a reward server, or the path of a configuration for an engine
in this process; without one, from the environment variable ADJUDGE_REWARDS.
"""
