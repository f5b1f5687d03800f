"""The jobs whose speed is compared: commands of `lpzero`, and what must be ready before each."""

from __future__ import annotations

from dataclasses import dataclass

FORMULA = "sum(mul(abs(W), abs(G)))"
COLUMNS = "columns/zc_nasbench301.json"  # in the folder of the tables' data
# The search of a campaign, without its judgement: table, new directory, generations.
SEARCH = """
import sys, time, lpzero
table, out, generations = sys.argv[1:]
options = {}
if table.endswith(".json"):
    try:
        from spaces.tables.readers import ReadOptions
    except ImportError:  # the name it had before
        from spaces.tables.reading import Reading as ReadOptions
    options["reading"] = ReadOptions(task="cifar10")
try:
    from lpzero.discover.discovery import Campaign
except ImportError:  # before it had a name of its own
    Campaign = lpzero.Discovery
campaign = Campaign(table, out=out, generations=int(generations), **options)
campaign.objective.prepare()
start = time.process_time()
campaign.search()
print(campaign.outcome_.tally.evaluated, time.process_time() - start)
"""
# What a report, a list and the dashboard need of a campaign without a result: its directory.
OPEN = """
import sys, time
from pathlib import Path
from lpzero.discover import record
from lpzero.runs.config import read_config
config = read_config(Path(sys.argv[1]))
start = time.process_time()
run = record.read(config)
print(run.counts["tried"], time.process_time() - start)
"""


@dataclass(frozen=True, slots=True)
class Job:
    """A command of `lpzero`, or Python code, that is timed.

    tables: whose sketches it reads. from_sketches: branch tables and stored scores are removed
    before every repetition. ready: commands run first in each tree, not timed. OUT is a new folder,
    RUN one that a tree keeps, DATA that of the tables. now: options that give the command the
    meaning here that it had before. counts: what the code counts; it prints how many, and the
    processor seconds that they took.
    """

    name: str
    command: tuple[str, ...]
    tables: tuple[str, ...] = ()
    from_sketches: bool = False
    ready: tuple[tuple[str, ...], ...] = ()
    repetitions: int = 1
    now: tuple[str, ...] = ()
    counts: str | None = None


def _chains(table: str) -> Job:
    command = ("exhaust", table, "--unaries", "2", "--jobs", "2", "--memory", "2GB", "--out", "OUT")
    # Every run also reads sketches of another seed, for the stability of its winner.
    ready = (("stats", table, "--seed", "1"),)
    name = f"chains of two, {table}, from sketches"
    return Job(name, command, (table,), from_sketches=True, ready=ready)


_PAPER = ("discover", "gpt2-wt103", "--preset", "paper", "--out", "OUT")
_RANK = ("rank", "flexibert", "--proxy", FORMULA)

JOBS = {
    "chains-flexibert": _chains("flexibert"),
    "chains-gpt2": _chains("gpt2-wt103"),
    "products": Job(
        "products of two terms, flexibert, from branch tables",
        ("exhaust", "flexibert", "--terms", "2", "--jobs", "2", "--out", "OUT"),
        ("flexibert",),
        ready=(("exhaust", "flexibert", "--unaries", "1", "--jobs", "2", "--out", "OUT"),),
    ),
    "campaign": Job(
        "paper campaign, gpt2-wt103, from branch tables",
        _PAPER,
        ("gpt2-wt103",),
        ready=((*_PAPER, "--generations", "5"),),
        now=("--sign", "fitted", "--reductions", "sum,mean", "--chains", "up-to"),
    ),
    "rank": Job(
        "rank of one formula, flexibert, from sketches",
        _RANK,
        ("flexibert",),
        ready=(_RANK,),
        repetitions=3,
    ),
    "evaluations-columns": Job(
        "default campaign, zc_nasbench301 cifar10",
        (SEARCH, f"DATA/{COLUMNS}", "OUT", "60"),
        repetitions=3,
        counts="evaluations",
    ),
    "evaluations-nano": Job(
        "default campaign, nano-gpt2, from branch tables",
        (SEARCH, "nano-gpt2", "OUT", "60"),
        ("nano-gpt2",),
        ready=((SEARCH, "nano-gpt2", "OUT", "1"),),
        repetitions=3,
        counts="evaluations",
    ),
    "opening": Job(
        "opening an unfinished campaign of about 100,000 lines",
        (OPEN, "RUN"),
        ready=((SEARCH, f"DATA/{COLUMNS}", "RUN", "260"),),
        repetitions=3,
        counts="lines",
    ),
    "import": Job("import lpzero", ("import lpzero",), repetitions=5),
    "help": Job("lpzero --help", ("--help",), repetitions=5),
    "trazor": Job(
        "T-Razor, 30 networks of autoformer-tiny",
        (
            *("search", "autoformer-tiny", "--loop", "trazor", "--population", "10"),
            *("--steps", "2"),
            *("--mutations", "5", "--crossovers", "5", "--quiet"),
        ),
    ),
    "etas": Job(
        "ETAS, 20 networks of gpt2",
        (
            *("search", "gpt2", "--loop", "etas", "--evaluator", "proxy", "--samples", "15"),
            *("--mutants", "5", "--iterations", "1", "--quiet"),
        ),
    ),
}
