"""A job's curves where a team keeps its runs: Weights & Biases, MLflow, TensorBoard.

`python -m nlac.track JOB --to mlflow` follows a job from outside, by the API. One point per iteration, whose
number is the step: whoever starts it again goes on where it was, and nothing is written twice.
"""

from .following import Point, Tracker, follow, points

__all__ = ["Point", "Tracker", "follow", "points"]
