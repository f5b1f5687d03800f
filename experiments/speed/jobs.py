"""The jobs whose speed is compared: commands of `lpzero`, and what must be ready before each."""

from __future__ import annotations

from dataclasses import dataclass

FORMULA = "sum(mul(abs(W), abs(G)))"


@dataclass(frozen=True, slots=True)
class Job:
    """A command of `lpzero`, or Python code, that is timed.

    tables: whose sketches it reads. from_sketches: branch tables and stored scores are removed
    before every repetition. ready: commands run first in each tree, not timed. OUT is a new folder.
    now: options that give the command the meaning here that it had before.
    """

    name: str
    command: tuple[str, ...]
    tables: tuple[str, ...] = ()
    from_sketches: bool = False
    ready: tuple[tuple[str, ...], ...] = ()
    repetitions: int = 1
    is_code: bool = False
    now: tuple[str, ...] = ()


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
    "import": Job("import lpzero", ("import lpzero",), repetitions=5, is_code=True),
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
