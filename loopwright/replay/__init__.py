"""A recorded trace drives model and tools again: the same graph, the recorded answers and results.

    for run in replay("runs.jsonl"):
        print(run.equal, run.difference)

What is fed is in `feed`, how a run is played in `playing`, how steps are compared in `comparing`.
"""

from loopwright.replay.comparing import Difference
from loopwright.replay.playing import Replayed, areplay, replay

__all__ = ["Difference", "Replayed", "areplay", "replay"]
