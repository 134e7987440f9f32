"""From rollouts to rewards."""
