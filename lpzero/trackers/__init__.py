"""Callbacks of a campaign that write its progress for other tools: TensorBoard and MLflow.

Each is an extra (`lpzero[tensorboard]`, `lpzero[mlflow]`) and is imported when it is used:

    Discovery("nano-gpt2", callbacks=[TensorBoardTracker("runs/tensorboard")]).run()
"""

from lpzero.trackers.mlflow_tracker import MLflowTracker
from lpzero.trackers.tensorboard_tracker import TensorBoardTracker
from lpzero.trackers.tracker import Tracker, tracker

__all__ = ["MLflowTracker", "TensorBoardTracker", "Tracker", "tracker"]
