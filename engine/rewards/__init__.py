"""From rollouts to rewards.

    reward      the values: a rollout (`RewardItem`) goes in, a `Reward` comes out
    report      what of a rollout counts as its report, of a text or a `conversation`
    tasks       which task it is about; `row` finds in a data set what it is judged by, `gold` reads that
    rollout     one on its way through the protocols
    group       rollouts of one prompt judged against each other; `comparisons` says which meet, and what comes of it
    scorer      `RewardScorer`, the engine: scores rollouts by their deadlines, in one event loop
    source      `RewardSource`, what a trainer holds: calls a scorer from any thread and any event loop
    model       `RewardModel`, the source whose scorer runs in this process (`serving/client.py` has the other)
    flags       what a rollout does to please the judge; `injection` finds text that addresses it
    canaries    fixed reports that show when the judge has changed
    room        how long a rollout may be, by the judge's window
    audit       a second judge over a share of the rollouts
    run_log     what was scored, kept for `adjudge rewards replay`
    loop_thread an event loop in a thread of its own

What the configuration says is in `config/reward.py`, how scorecards become a number in `config/formula.py`.
"""
