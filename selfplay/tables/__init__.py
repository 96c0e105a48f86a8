"""Endgame tables: built once, kept on disk, asked inside searches or from Python.

`build`, `info` and `verify` are in `manage.py`, the questions in `probe.py`.
"""

from selfplay.tables.probe import best_move, best_moves, covers, distance, value

__all__ = ["best_move", "best_moves", "covers", "distance", "value"]
