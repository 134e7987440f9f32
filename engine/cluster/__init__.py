"""Evaluation on Ray: a driver hands cases to evaluators and replaces those that die or hang.

Importing this needs Ray and raises ConfigError without it; a run without a cluster does not import it.
"""

from adjudge.engine.config.settings import ConfigError

try:
    import ray as _ray  # noqa: F401
except ImportError as error:
    raise ConfigError("cluster: Ray is not installed; pip install 'adjudge[cluster]'") from error
