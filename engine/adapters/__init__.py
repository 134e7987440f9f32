"""Rewards in the shapes that trainers call, one small module per trainer (docs/rewards/ explains how to plug in each).

All of them take rewards from a `source`: the URL of a reward server, or the path of a configuration for an engine in
this process. The environment variable ADJUDGE_REWARDS names it if the call does not.
"""
