"""From rollouts to rewards.

    reward      the values: a rollout (`RewardItem`) goes in, a `Reward` comes out, with the gold and rubrics it brings
    report      which part of a rollout's text or conversation counts as its report
    tokens      rollouts that come as tokens
    rollout     a rollout on its way through the protocols, and the task it is about
    dropout     which of a task's criteria a step judges by
    group       rollouts of one prompt judged against each other
    scorer      `RewardScorer`, the engine: scores rollouts within their deadlines, in one event loop
    source      `RewardSource`, what a trainer holds: calls a scorer from any thread and any event loop
    model       `RewardModel`, the source whose scorer runs in this process (`serving/client.py` has the remote one)
    flags       what a rollout does to please the judge, such as text that addresses it
    panel       what the rewards look like lately: ties, saturation, drift of criteria
    audit       a second judge over a share of the rollouts, and fixed reports that show when the judge has changed
    run_log     scored rollouts, kept for `adjudge rewards replay`

`config/reward.py` defines the configuration, and how scorecards become a number.
"""
