"""The memory of a workspace: one SQLite file, one class per aggregate."""

from pathlib import Path

from .candidates import Candidate, Candidates, Descent
from .database import Database, StoreBusy
from .failures import Failure, Failures
from .jobs import Job, Jobs
from .pages import Page, Pages, Tasks
from .predictions import Predictions, StoredPrediction
from .rules import Rule, Rules
from .runs import Run, Runs
from .verdicts import StoredVerdict, Verdicts

__all__ = [
    "Candidate", "Descent", "Failure", "Job", "Page", "Rule", "Run", "Store", "StoreBusy", "StoredPrediction", "StoredVerdict",
]  # fmt: skip


class Store:
    """Everything a workspace remembers. Safe to use from several threads and, through the file, from several processes."""

    def __init__(self, path: Path) -> None:
        self.database = Database(path)
        self.candidates = Candidates(self.database)
        self.verdicts = Verdicts(self.database)
        self.predictions = Predictions(self.database)
        self.runs = Runs(self.database)
        self.failures = Failures(self.database)
        self.rules = Rules(self.database)
        self.jobs = Jobs(self.database)
        self.tactics = Pages(self.database, "tactics")
        self.calibrations = Pages(self.database, "calibrations")
        self.tasks = Tasks(self.database)

    @property
    def path(self) -> Path:
        """The file."""
        return self.database.path

    def close(self) -> None:
        """Close the calling thread's connection."""
        self.database.close()
