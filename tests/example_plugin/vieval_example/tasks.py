"""The tasks of this package: its judge on its benchmarks, in both settings, and VIEval's judges
on them.
"""

from vieval_plugin.benchmarks.tasks import TaskRow

TASKS = (
    TaskRow("squares", "praise"),
    TaskRow("squares", "praise", "strict"),
    TaskRow("squares", "viescore"),
    TaskRow("square_pairs", "praise"),
    TaskRow("square_pairs", "pairwise"),
)
