"""miles: a custom reward function, in the shape of slime's, from which miles comes.

    --custom-rm-path adjudge.engine.adapters.miles.reward            with ADJUDGE_REWARDS set
    --rm-type remote_rm --rm-url http://127.0.0.1:8300/reward

miles calls it with one sample or with a list. A call that miles cancels is cancelled, never answered with 0. Over HTTP
it does not repeat a failed request: it raises at once.
"""

from adjudge.engine.adapters.slime import Sample, reward

__all__ = ["Sample", "reward"]
