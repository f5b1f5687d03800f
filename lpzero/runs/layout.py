"""The names of the files in a run's directory."""

CONFIG = "config.json"  # the request; written once, see `config`
JOURNAL = "journal.jsonl"  # every step, appended to, see `journal`
CHECKPOINT = "checkpoint.json"  # the state to resume from
RESULT = "result.json"  # the result; written last
SCORES = "scores.json"  # the winner's score and the target of every architecture, see `scoresheet`
TIMING = "timing.json"  # seconds; the only file that differs between equal runs
LOCK = "lock"  # locked while a process works on the run

# Campaigns: the best and the front, and a line per generation.
HALL, HALL_CSV, HISTORY = "hall_of_fame.json", "hall_of_fame.csv", "history.csv"
SHARDS = "shards"  # exhaustive runs: a folder with the measures of every formula
TRACE = "trace.csv"  # searches: the trace, for spreadsheets
TABLE = "table.json"  # table builds: the table
