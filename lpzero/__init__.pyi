"""LPZero engine: discovers formulas that rank untrained transformers."""

# Printed by `python -m lpzero.python.signatures` from the requests of the verbs: do not edit.

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from lpzero import hf as hf
from lpzero import optuna as optuna
from lpzero.discover.campaign import Progress
from lpzero.own import space as space
from lpzero.proxies.model_scores import Scores
from lpzero.python.discovery import Discovery as _Discovery
from lpzero.python.formula import FormulaObject
from lpzero.python.formula import formula as formula
from lpzero.python.inputs import AnyTable, Data, ProxyLike, SpaceLike
from lpzero.python.rows import Exhausted, RankedRow, Rows, SearchResult, TrainedTable
from lpzero.statistics.layout import Layout as Layout
from lpzero.statistics.objective import Loss

__version__: str

class Discovery(_Discovery):
    """A search for the formula that best ranks a table: `Discovery("nano-gpt2").fit()`.

    `data` is a table's name, a file, a table, a DataFrame with a `target`, pairs of an architecture
    of the `space` and its target, or a list of tables. `fit()` searches and judges; `fit(X, y)`
    does so for columns, as scikit-learn's estimators do. Then `predict` scores architectures or new
    rows (larger is better), `score` is Spearman's rho, and

    best_: the winner, with rho on train, valid and test.
    predictor_: the best guess, with standard deviations, which is not a formula.
    hall_of_fame_: the best formulas. history_: a row per generation. result_: everything.
    feature_names_in_, n_features_in_: the columns, if `fit` was given X.

    After an interrupt the object has what was found until then. `warm_start` goes on from what an
    earlier `fit` found. `progress` None shows a bar in a terminal or a notebook. A callback gets a
    `Progress` after every generation and returns True to stop.
    """

    out: str | Path | None
    resume: bool
    preset: str | None
    method: str | None
    population: int | None
    generations: int | None
    offspring: int | None
    pool: float | None
    crossover: float | None
    mutation: float | None
    neighbours: float | None
    immigrants: float | None
    statistics: Sequence[str] | None
    unaries: int | None
    depth: int | None
    terms: int | None
    columns: Sequence[str] | None
    terms_from: Sequence[str] | None
    columns_only: bool | None
    columns_as: str | None
    same_statistic: bool | None
    sign: str | None
    reductions: Sequence[str] | None
    chains: str | None
    binary_weights: str | None
    survivors: str | None
    whole_table: bool | None
    rules: Sequence[str] | None
    objectives: Sequence[str] | None
    across: str | None
    archs: int | None
    choose: str | None
    weights_seeds: int | None
    stable: float | None
    predictor: str | None
    seed: int | None
    start: Sequence[str] | None
    target: str | None
    smaller_is_better: bool
    ids: str | None
    task: str | None
    impute: bool
    categories: bool
    upstream_dims: bool
    forward_only: bool
    is_random: bool
    time_limit: float | None
    split_seed: int | None
    weights_seed: int | None
    permutations: int
    track: Sequence[str]
    corpus: str | Path | None
    tokenizer: str | Path | None
    batch: int | None
    length: int | None
    definitions: str | None
    tables_folder: str | Path | None
    jobs: int
    backend: str
    scheduler: str | None
    device: str
    memory: int | None
    cache: str | Path | None
    def __init__(
        self,
        data: Data | Sequence[Data] | None = None,
        *,
        space: SpaceLike | None = None,
        splits: int | None = 0,
        warm_start: bool = False,
        progress: bool | None = None,
        callbacks: Sequence[Callable[[Progress], bool | None]] = (),
        out: str | Path | None = None,
        resume: bool = False,
        preset: str | None = None,
        method: str | None = None,
        population: int | None = None,
        generations: int | None = None,
        offspring: int | None = None,
        pool: float | None = None,
        crossover: float | None = None,
        mutation: float | None = None,
        neighbours: float | None = None,
        immigrants: float | None = None,
        statistics: Sequence[str] | None = None,
        unaries: int | None = None,
        depth: int | None = None,
        terms: int | None = None,
        columns: Sequence[str] | None = None,
        terms_from: Sequence[str] | None = None,
        columns_only: bool | None = None,
        columns_as: str | None = None,
        same_statistic: bool | None = None,
        sign: str | None = None,
        reductions: Sequence[str] | None = None,
        chains: str | None = None,
        binary_weights: str | None = None,
        survivors: str | None = None,
        whole_table: bool | None = None,
        rules: Sequence[str] | None = None,
        objectives: Sequence[str] | None = None,
        across: str | None = None,
        archs: int | None = None,
        choose: str | None = None,
        weights_seeds: int | None = None,
        stable: float | None = None,
        predictor: str | None = None,
        seed: int | None = None,
        start: Sequence[str] | None = None,
        target: str | None = None,
        smaller_is_better: bool = False,
        ids: str | None = None,
        task: str | None = None,
        impute: bool = False,
        categories: bool = False,
        upstream_dims: bool = False,
        forward_only: bool = False,
        is_random: bool = False,
        time_limit: float | None = None,
        split_seed: int | None = None,
        weights_seed: int | None = None,
        permutations: int = 20,
        track: Sequence[str] = (),
        corpus: str | Path | None = None,
        tokenizer: str | Path | None = None,
        batch: int | None = None,
        length: int | None = None,
        definitions: str | None = None,
        tables_folder: str | Path | None = None,
        jobs: int = 1,
        backend: str = "loky",
        scheduler: str | None = None,
        device: str = "auto",
        memory: int | None = None,
        cache: str | Path | None = None,
    ) -> None: ...

def exhaust(
    data: Data,
    *,
    space: SpaceLike | None = None,
    progress: bool | None = None,
    unaries: int = 1,
    same_statistic: bool = False,
    terms: int = 1,
    split_seed: int = 0,
    out: str | Path | None = None,
    by: str = "rho",
    reduction: str | None = None,
    operation: str | None = None,
    using: str | None = None,
    without: Sequence[str] = (),
    top: int = 10,
    forward_only: bool = False,
    permutations: int = 20,
    target: str | None = None,
    smaller_is_better: bool = False,
    ids: str | None = None,
    task: str | None = None,
    impute: bool = False,
    categories: bool = False,
    upstream_dims: bool = False,
    corpus: str | Path | None = None,
    tokenizer: str | Path | None = None,
    batch: int | None = None,
    length: int | None = None,
    definitions: str | None = None,
    tables_folder: str | Path | None = None,
    jobs: int = 1,
    backend: str = "loky",
    scheduler: str | None = None,
    device: str = "auto",
    memory: int | None = None,
    cache: str | Path | None = None,
    no_lock: bool = False,
    weights_seed: int = 0,
) -> Exhausted:
    """Every formula of the paper's space on the data: chosen on train, reported on test."""

def load(
    path: str | Path,
) -> Discovery | FormulaObject | SearchResult | Rows[RankedRow] | Exhausted:
    """What is in a run's directory, as the function gives it that made the run, or in a file.

    A campaign is a `Discovery`, a search a `SearchResult`, a ranking `Rows`; an exported formula is
    as `lpzero.formula` makes one. A table is read by `load_table`.
    """

def load_table(
    data: Data,
    *,
    space: SpaceLike | None = None,
    target: str | None = None,
    smaller_is_better: bool = False,
    ids: str | None = None,
    task: str | None = None,
    tables_folder: str | Path | None = None,
) -> AnyTable:
    """The table of that name, in that file (CSV, JSON lines, Parquet, a trained table) or frame.

    Rows are architectures of `space`; without one, columns of numbers. `target` is the column to
    rank by, `ids` that of names; the released tables are in `tables_folder`.
    """

def rank(
    data: Data,
    proxies: ProxyLike | Sequence[ProxyLike] | None = None,
    *,
    space: SpaceLike | None = None,
    progress: bool | None = None,
    released: bool = False,
    seeds: int = 1,
    batches: int = 1,
    loss: str = "auto",
    split_seed: int = 0,
    within: str = "depth-width",
    exact: bool = False,
    chunk: int | None = None,
    out: str | Path | None = None,
    no_lock: bool = False,
    corpus: str | Path | None = None,
    tokenizer: str | Path | None = None,
    batch: int | None = None,
    length: int | None = None,
    definitions: str | None = None,
    target: str | None = None,
    smaller_is_better: bool = False,
    ids: str | None = None,
    task: str | None = None,
    impute: bool = False,
    categories: bool = False,
    upstream_dims: bool = False,
    tables_folder: str | Path | None = None,
    jobs: int = 1,
    backend: str = "loky",
    scheduler: str | None = None,
    device: str = "auto",
    memory: int | None = None,
    cache: str | Path | None = None,
    weights_seed: int = 0,
) -> Rows[RankedRow]:
    """A row per proxy against the targets of the data, best first.

    Without proxies all that apply are ranked, but for released recipes and those that run on more
    inputs than the others (see docs/proxies.md). A proxy is a name, a formula, an exported file, a
    run's directory, a fitted `Discovery` or a function of a network.
    """

def score(
    model: nn.Module | Mapping[str, nn.Module],
    batch: Tensor | Mapping[str, Tensor] | None = None,
    proxies: ProxyLike | Sequence[ProxyLike] | None = None,
    *,
    loss: str | Loss = "auto",
    layout: Layout | None = None,
    released: bool = False,
    chunk: int | None = None,
    definitions: str = "ours",
    weights_seed: int = 0,
    device: str = "auto",
) -> Scores:
    """The scores of a torch transformer on a batch: a row for each proxy; larger is better.

    `model` may be several models by name; then proxies that rank models can be used too. `batch` is
    token ids (B, T), images (B, channels, H, W), or tensors by the names of the model's arguments;
    by default random ones that the model reads. `proxies` are names, formulas, exported files or
    functions of a `Network`; by default every proxy but the released recipes. `loss(output, batch)`
    gives one number or one per sample; by default it is the model's own if it returns one,
    next-token for a causal model with word logits, else a random cotangent. `layout` names what
    cannot be found by running the model. The models are left as they were.
    """

def search(
    space: SpaceLike,
    proxy: ProxyLike | Sequence[ProxyLike] | None = None,
    loop: str | Sequence[str] | None = None,
    *,
    train: Callable[[Any, int], float] | str | None = None,
    table: Data | None = None,
    target: str | None = None,
    progress: bool | None = None,
    evaluator: str | None = None,
    confirm: int | None = None,
    beyond_table: bool = False,
    training_steps: int | None = None,
    min_parameters: float | None = None,
    max_parameters: float | None = None,
    min_decoder_parameters: float | None = None,
    max_decoder_parameters: float | None = None,
    min_flops: float | None = None,
    max_flops: float | None = None,
    min_latency: float | None = None,
    max_latency: float | None = None,
    budget: int | None = None,
    at_once: int | None = None,
    samples: int | None = None,
    starts: int | None = None,
    mutants: int | None = None,
    probability: float | None = None,
    front: str | None = None,
    parents: int | None = None,
    chosen: int | None = None,
    iterations: int | None = None,
    patience: int | None = None,
    per_bin: int | None = None,
    margin: int | None = None,
    selector: str | None = None,
    grouping: str | None = None,
    weights_seeds: int | None = None,
    evaluations: int | None = None,
    population: int | None = None,
    tournament: int | None = None,
    mutations: int | None = None,
    crossovers: int | None = None,
    steps: int | None = None,
    inertia: float | None = None,
    gamma1: float | None = None,
    gamma2: float | None = None,
    shape_moves: float | None = None,
    proportion: float | None = None,
    compare: bool = False,
    seeds: int | None = None,
    time_limit: float | None = None,
    watts: float | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    seed: int | None = None,
    weights_seed: int | None = None,
    networks: str | None = None,
    no_lock: bool = False,
    corpus: str | Path | None = None,
    tokenizer: str | Path | None = None,
    batch: int | None = None,
    length: int | None = None,
    tables_folder: str | Path | None = None,
    jobs: int | None = None,
    backend: str = "loky",
    scheduler: str | None = None,
    device: str = "auto",
    memory: int | None = None,
    cache: str | Path | None = None,
) -> SearchResult:
    """The best architecture of the space that a loop finds, guided by a proxy.

    `train`, your function of an architecture and a seed, gives targets: `budget` trainings find
    the best (its address as text, my_module.py:train, lets a search in `out` be resumed by the
    command line too).

    The constants of the loop and the bounds of costs, such as `max_parameters`, are options. With
    `table` (and the `target` of a frame or a file) a surrogate that is fitted to it is the
    evaluator; a `Discovery` on objects of the space brings its own. Several proxies or loops need
    `compare=True`.
    """

def train(
    space: SpaceLike,
    *,
    progress: bool | None = None,
    out: str | Path | None = None,
    n_archs: int | None = None,
    seeds: int | None = None,
    steps: int | None = None,
    supernet: bool = False,
    dataset: str | None = None,
    weights: str | Path | None = None,
    select: str | Path | None = None,
    sampler: str | None = None,
    batch: int | None = None,
    sandwich: int | None = None,
    learning_rate: float | None = None,
    final_rate: float | None = None,
    warmup: float | None = None,
    weight_decay: float | None = None,
    smoothing: float | None = None,
    drop_path: float | None = None,
    clip: float | None = None,
    every: int | None = None,
    images: int | None = None,
    seed: int | None = None,
    no_lock: bool = False,
    jobs: int = 1,
    backend: str = "loky",
    scheduler: str | None = None,
) -> TrainedTable:
    """A table trained from architectures of the space, or with `supernet=True` one supernet."""
