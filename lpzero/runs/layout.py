"""The names of the files in a run's directory."""

CONFIG = "config.json"  # the request and the command that started the run, see `config`
JOURNAL = "journal.jsonl"  # every step, appended to, see `journal`
CHECKPOINT = "checkpoint.json"  # the state to resume from
RESULT = "result.json"  # the result; written last
SCORES = "scores.json"  # the winner's score and the target of every architecture, see `formula_run`
PREDICTOR = "predictor.json"  # campaigns: what `lpzero export --to predictor` writes into a file
TIMING = "timing.json"  # seconds; the only file that differs between equal runs
LOCK = "lock"  # locked while a process works on the run

# Campaigns: the best and the front, and a line per generation.
HALL, HALL_CSV, HISTORY = "hall_of_fame.json", "hall_of_fame.csv", "history.csv"
# Files that are read back and have no seal of their own: the result has their digests.
DIGESTED = (HALL, HISTORY)
SHARDS = "shards"  # exhaustive runs: a folder with the measures of every formula
TRACE = "trace.csv"  # searches: the trace, for spreadsheets
TABLE = "table.json"  # table builds: the table


def place(run: str, name: str) -> str:
    """What the seal of a file of the directory states: the run's hash and the file's name."""
    return f"{run}/{name}"
