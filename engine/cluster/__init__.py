"""The same evaluation on Ray: a driver hands cases to evaluators, and replaces whoever dies or hangs.

Importing this needs Ray, and raises ConfigError without it; a run that asks for no cluster does not import it.
"""

from adjudge.engine.config.errors import ConfigError

try:
    import ray as _ray  # noqa: F401
except ImportError as error:
    raise ConfigError("cluster: Ray is not installed; pip install 'adjudge[cluster]'") from error
