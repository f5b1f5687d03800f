"""LPZero engine: discovers formulas that rank untrained transformers."""

# Printed by `python -m lpzero.python.signatures` from the requests of the verbs: do not edit.

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from lpzero import hf as hf
from lpzero.discover.campaign import Progress
from lpzero.own import space as space
from lpzero.proxies.model_scores import Scores
from lpzero.python.discovery import Discovery as _Discovery
from lpzero.python.formula import FormulaObject
from lpzero.python.formula import formula as formula
from lpzero.python.inputs import AnyTable, Data, ProxyLike, SpaceLike
from lpzero.python.rows import Exhausted, Rows, SearchResult, TrainedTable
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

    Options:
        out: str | Path | None = None
            The campaign's directory. [default: a new one in runs]
        resume: bool = False
            Continue the run in out, if there is one.
        preset: str | None = None
            The settings to start from; other options override them. paper is Algorithm 1 of LPZero.
            [default: default]
        method: str | None = None
            front searches for a front of fitness and size, paper is Algorithm 1 of LPZero, random
            draws formulas with the same budget. [default: front; paper: paper; released: paper]
        population: int | None = None
            The number of formulas that survive a generation. [default: 100; paper: 80; released:
            80]
        generations: int | None = None
            The number of generations after the first population. [default: 60; paper: 1000;
            released: 1000]
        offspring: int | None = None
            The number of new formulas evaluated per generation. [default: 100; paper: 1; released:
            1]
        pool: float | None = None
            Method paper: the share of the population that parents are drawn from. [default: 0.1;
            released: 0.5]
        crossover: float | None = None
            The probability that two parents are crossed. [default: 0.5]
        mutation: float | None = None
            The probability that a child is mutated. [default: 0.5]
        neighbours: float | None = None
            Method front: the share of offspring that are neighbours of the best. [default: 0.5;
            paper: 0.0; released: 0.0]
        immigrants: float | None = None
            Method front: the probability that any other child is drawn at random. [default: 0.1;
            paper: 0.0; released: 0.0]
        statistics: Sequence[str] | None = None
            The statistics that may appear, of A J G H W S, as in AHWS. [default: AJGHWS]
        unaries: int | None = None
            The most unary operations in a row. [default: 2]
        depth: int | None = None
            The most binary operations from the root to a leaf; 1 is the paper's form. [default: 1]
        terms: int | None = None
            The most terms of a product; 1 searches single terms, as the paper does. [default: 4;
            paper: 1; released: 1]
        columns: Sequence[str] | None = None
            Columns of the table that formulas may use as terms, separated by commas; of a table
            without networks all, unless some are named.
        terms_from: Sequence[str] | None = None
            Proxies, by name, whose scores formulas may use as terms, as in snip,ntkt,sept.
        columns_only: bool | None = None
            Formulas of columns alone: no statistics and sizes, and no networks.
        columns_as: str | None = None
            How columns enter sums: log is sgn(x) log(1 + |x|) where they change sign, ranks
            replaces every column by its ranks in the table, in products too. [default: log]
        same_statistic: bool | None = None
            Let a binary operation combine a statistic with itself. [default: off; released: on]
        sign: str | None = None
            fitted gives every formula the sign that suits the fitness rows, as-written keeps it.
            [default: fitted; paper: as-written; released: as-written]
        reductions: Sequence[str] | None = None
            With terms 1: the reductions over blocks that may appear, sum, mean or both. [default:
            sum,mean; paper: mean; released: mean]
        chains: str | None = None
            With terms 1: whether chains have up to unaries operations or exactly as many, of which
            identity may be one. [default: up-to; paper: exact; released: exact]
        binary_weights: str | None = None
            How binary operations are drawn: equally often, or add .6, sub .3, matmul and mul .05
            each as in the authors' code. [default: equal; released: released]
        survivors: str | None = None
            Method paper: the best of parents and offspring survive, or the offspring replaces the
            worst. [default: best; released: replace-worst]
        whole_table: bool | None = None
            Draw the archs fitness rows from the whole table instead of train; they are train then,
            and test is what is left.
        rules: Sequence[str] | None = None
            Pruning rules: on, off, or names separated by commas (see `lpzero rules`). [default: on;
            released: off]
        objectives: Sequence[str] | None = None
            What to maximise: rho, given-params or within; several, with commas, make a front.
            [default: rho]
        across: str | None = None
            With several tables: regret maximises the lowest difference to the best that each
            table's own search finds, fisher the mean of Fisher's z, min the lowest value; pareto
            makes a front of the tables. [default: regret]
        archs: int | None = None
            The number of training rows that fitness is measured on. [default: all; paper: 50;
            released: 50]
        choose: str | None = None
            How the winner is chosen: nested cross-validates how much of the networks to read, from
            a single counter to four reliable terms, and of columns how long a formula may be, from
            a single column to a weighted sum of twelve products; it takes the simplest level that
            is as good as the best; stable takes the best rho on train and valid among formulas
            whose scores repeat with other seeds (see stable), valid the member of the front that is
            best on valid, train the formula with the best fitness. With several tables, terms 1 or
            another method than front, nested is stable. [default: nested; paper: train; released:
            train]
        weights_seeds: int | None = None
            With choose nested: over how many seeds of weights and batches the values of networks
            are averaged. With 1, how far they repeat is read off 30 rows with a second seed.
            [default: 1]
        stable: float | None = None
            With choose stable: the least rank correlation between the scores of two seeds.
            [default: 0.998]
        predictor: str | None = None
            With choose nested: gp also fits a predictor, the mean of the winner's and a Gaussian
            process's normal scores, which ranks best but is not a formula; none does not. [default:
            gp]
        seed: int | None = None
            The seed of the search. [default: 0; paper: 42; released: 42]
        start: Sequence[str] | None = None
            A formula to put into the first population; repeatable.
        target: str | None = None
            A file as table: the column to rank by.
        smaller_is_better: bool = False
            A file as table: a small target is good.
        ids: str | None = None
            A file as table: the column of ids. [default: one called id or name, else lines]
        task: str | None = None
            A zero-cost file of NASLib: the task. [default: the only one]
        impute: bool = False
            A file as table: where fewer than a tenth of a column's numbers are missing, they are
            its median, and a column NAME_missing says where.
        categories: bool = False
            A file of rows: a column of texts becomes a column of 0 and 1 for each text.
        upstream_dims: bool = False
            Build every FlexiBERT model with hidden 256 and FFN 1024, as published.
        forward_only: bool = False
            Exclude the statistics that need gradients, G and J.
        is_random: bool = False
            Same as method random.
        time_limit: float | None = None
            Stop after this many seconds; resume continues. [default: no limit]
        split_seed: int | None = None
            The seed of the train/valid/test split. [default: 0]
        weights_seed: int | None = None
            The seed of untrained networks and batches. [default: 0]
        permutations: int = 20
            How often the search of products is repeated on permuted targets, to show what it fits
            to noise; 0 turns it off.
        track: Sequence[str] = ()
            Write every generation for another tool, tensorboard or mlflow; repeatable.
        corpus: str | Path | None = None
            A text file to draw sequences from, read as bytes or through tokenizer. [default: random
            tokens]
        tokenizer: str | Path | None = None
            A tokenizer.json of Hugging Face that reads corpus. [default: bytes]
        batch: int | None = None
            The number of sequences or images in the batch. [default: the space's]
        length: int | None = None
            The number of tokens of a sequence. [default: the space's]
        definitions: str | None = None
            What H, W and G of formulas are; released takes them as the authors' code does: the
            query or the input of a linear transform, and the Linears of the mixing operation.
            [default: ours]
        tables_folder: str | Path | None = None
            The data root: the folder of the released tables.
        jobs: int = 1
            The number of parallel processes; it does not change the result.
        backend: str = 'loky'
            Where processes run: loky is this machine, dask and ray are clusters.
        scheduler: str | None = None
            The address of the cluster: tcp://HOST:PORT (Dask), HOST:PORT or ray://HOST:PORT (Ray);
            see https://lpzero.readthedocs.io/en/latest/docs/cluster.html.
        device: str = 'auto'
            The device that networks run on; auto is CUDA if available.
        memory: int | None = None
            The memory that a network and its batch may take; exhaust: all processes together.
            [default: half of the free memory; exhaust: 4GB]
        cache: str | Path | None = None
            The folder of the sketches. [default: ~/.cache/lpzero]
    """
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
    """Every formula of the paper's space on the data: chosen on train, reported on test.

    Options:
        unaries: int = 1
            The number of unary operations per chain.
        same_statistic: bool = False
            Also pair each statistic with itself.
        terms: int = 1
            2 judges every product of two terms instead of the paper's space.
        split_seed: int = 0
            The seed of the train/valid/test split.
        out: str | Path | None = None
            The run's directory. [default: runs/exhaust-TABLE-...]
        by: str = 'rho'
            The measure on the training rows that orders the formulas: rho, given-params or within.
        reduction: str | None = None
            Show only formulas with this reduction over blocks.
        operation: str | None = None
            Show only formulas with this operation; one-sided has a single branch.
        using: str | None = None
            Show only formulas with this statistic.
        without: Sequence[str] = ()
            Show only formulas without these statistics, as in GJ.
        top: int = 10
            The number of formulas to show.
        forward_only: bool = False
            Same as without GJ: no statistics that need gradients.
        permutations: int = 20
            How often the search of products is repeated on permuted targets, to show what it fits
            to noise; 0 turns it off.
        target: str | None = None
            A file as table: the column to rank by.
        smaller_is_better: bool = False
            A file as table: a small target is good.
        ids: str | None = None
            A file as table: the column of ids. [default: one called id or name, else lines]
        task: str | None = None
            A zero-cost file of NASLib: the task. [default: the only one]
        impute: bool = False
            A file as table: where fewer than a tenth of a column's numbers are missing, they are
            its median, and a column NAME_missing says where.
        categories: bool = False
            A file of rows: a column of texts becomes a column of 0 and 1 for each text.
        upstream_dims: bool = False
            Build every FlexiBERT model with hidden 256 and FFN 1024, as published.
        corpus: str | Path | None = None
            A text file to draw sequences from, read as bytes or through tokenizer. [default: random
            tokens]
        tokenizer: str | Path | None = None
            A tokenizer.json of Hugging Face that reads corpus. [default: bytes]
        batch: int | None = None
            The number of sequences or images in the batch. [default: the space's]
        length: int | None = None
            The number of tokens of a sequence. [default: the space's]
        definitions: str | None = None
            What H, W and G of formulas are; released takes them as the authors' code does: the
            query or the input of a linear transform, and the Linears of the mixing operation.
            [default: ours]
        tables_folder: str | Path | None = None
            The data root: the folder of the released tables.
        jobs: int = 1
            The number of parallel processes; it does not change the result.
        backend: str = 'loky'
            Where processes run: loky is this machine, dask and ray are clusters.
        scheduler: str | None = None
            The address of the cluster: tcp://HOST:PORT (Dask), HOST:PORT or ray://HOST:PORT (Ray);
            see https://lpzero.readthedocs.io/en/latest/docs/cluster.html.
        device: str = 'auto'
            The device that networks run on; auto is CUDA if available.
        memory: int | None = None
            The memory that a network and its batch may take; exhaust: all processes together.
            [default: half of the free memory; exhaust: 4GB]
        cache: str | Path | None = None
            The folder of the sketches. [default: ~/.cache/lpzero]
        no_lock: bool = False
            Do not lock the run's directory, for file systems without locks; make sure that no other
            process uses it.
        weights_seed: int = 0
            The seed of untrained networks and batches.
    """

def load(
    path: str | Path,
) -> Discovery | FormulaObject | SearchResult | Rows | Exhausted:
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
) -> Rows:
    """A row per proxy against the targets of the data, best first.

    Without proxies all that apply are ranked, but for released recipes and those that run on more
    inputs than the others (see docs/proxies.md). A proxy is a name, a formula, an exported file, a
    run's directory, a fitted `Discovery` or a function of a network.

    Options:
        released: bool = False
            Without --proxy: also rank the authors' released recipes.
        seeds: int = 1
            The number of weight seeds to compare.
        batches: int = 1
            The number of batches to compare.
        loss: str = 'auto'
            The loss to differentiate; auto is next-token for language models, else cotangent.
        split_seed: int = 0
            The seed of the train/valid/test split.
        within: str = 'depth-width'
            Rank within equal depth, width, depth-width, or an extra column of the table.
        exact: bool = False
            Also score formulas on whole tensors, and correlate both scores.
        chunk: int | None = None
            The number of sequences per pass; fewer need less memory. [default: all]
        out: str | Path | None = None
            Save the ranking and its page here.
        no_lock: bool = False
            Do not lock the run's directory, for file systems without locks; make sure that no other
            process uses it.
        corpus: str | Path | None = None
            A text file to draw sequences from, read as bytes or through tokenizer. [default: random
            tokens]
        tokenizer: str | Path | None = None
            A tokenizer.json of Hugging Face that reads corpus. [default: bytes]
        batch: int | None = None
            The number of sequences or images in the batch. [default: the space's]
        length: int | None = None
            The number of tokens of a sequence. [default: the space's]
        definitions: str | None = None
            What H, W and G of formulas are; released takes them as the authors' code does: the
            query or the input of a linear transform, and the Linears of the mixing operation.
            [default: ours]
        target: str | None = None
            A file as table: the column to rank by.
        smaller_is_better: bool = False
            A file as table: a small target is good.
        ids: str | None = None
            A file as table: the column of ids. [default: one called id or name, else lines]
        task: str | None = None
            A zero-cost file of NASLib: the task. [default: the only one]
        impute: bool = False
            A file as table: where fewer than a tenth of a column's numbers are missing, they are
            its median, and a column NAME_missing says where.
        categories: bool = False
            A file of rows: a column of texts becomes a column of 0 and 1 for each text.
        upstream_dims: bool = False
            Build every FlexiBERT model with hidden 256 and FFN 1024, as published.
        tables_folder: str | Path | None = None
            The data root: the folder of the released tables.
        jobs: int = 1
            The number of parallel processes; it does not change the result.
        backend: str = 'loky'
            Where processes run: loky is this machine, dask and ray are clusters.
        scheduler: str | None = None
            The address of the cluster: tcp://HOST:PORT (Dask), HOST:PORT or ray://HOST:PORT (Ray);
            see https://lpzero.readthedocs.io/en/latest/docs/cluster.html.
        device: str = 'auto'
            The device that networks run on; auto is CUDA if available.
        memory: int | None = None
            The memory that a network and its batch may take; exhaust: all processes together.
            [default: half of the free memory; exhaust: 4GB]
        cache: str | Path | None = None
            The folder of the sketches. [default: ~/.cache/lpzero]
        weights_seed: int = 0
            The seed of untrained networks and batches.
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

    Options:
        chunk: int | None = None
            Inputs per pass. [default: all]
        definitions: str = 'ours'
            What H, W and G of formulas are; released takes them as the authors' code does: the
            query or the input of a linear transform, and the Linears of the mixing operation.
        weights_seed: int = 0
            The seed of untrained networks and batches.
        device: str = 'auto'
            The device that networks run on; auto is CUDA if available.
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
    evaluator. Several proxies or loops need `compare=True`.

    Options:
        evaluator: str | None = None
            One of table, surrogate, training, supernet:DIR, proxy. [default: surrogate if a table
            is present, else proxy; prenas, trazor: proxy]
        confirm: int | None = None
            Train the best and the second best from this many more seeds, and say if they differ.
        beyond_table: bool = False
            Let a surrogate predict outside the ranges of its table too. [default: the search stays
            inside; with compare it does not]
        training_steps: int | None = None
            The number of training steps. [default: the recipe's]
        min_parameters: float | None = None
            At least this many parameters.
        max_parameters: float | None = None
            At most this many parameters.
        min_decoder_parameters: float | None = None
            At least this many decoder parameters.
        max_decoder_parameters: float | None = None
            At most this many decoder parameters.
        min_flops: float | None = None
            At least this many flops.
        max_flops: float | None = None
            At most this many flops.
        min_latency: float | None = None
            At least this many milliseconds per forward pass on this machine.
        max_latency: float | None = None
            At most this many milliseconds per forward pass on this machine.
        budget: int | None = None
            The number of trainings (budget: 30).
        at_once: int | None = None
            The number of trainings chosen together, which jobs can run side by side (budget: 1).
        samples: int | None = None
            The number of architectures drawn first (budget: 1000, etas: 300, random: 1000).
        starts: int | None = None
            The number of trainings before the model chooses (budget: 6).
        mutants: int | None = None
            The number of mutants of the best that become candidates (budget: 50); The number of
            mutants scored per iteration (etas: 100).
        probability: float | None = None
            The probability that a field mutates (budget: 0.3, etas: 0.3, regularised: 0.3).
        parents: int | None = None
            The number of best architectures so far that are mutated (etas: 3).
        chosen: int | None = None
            The number of mutants evaluated per iteration (etas: 3).
        iterations: int | None = None
            The number of iterations (etas: 10).
        patience: int | None = None
            Stop after this many iterations without improvement (etas: 5).
        per_bin: int | None = None
            The number of architectures kept in each bin of sizes (prenas: 1).
        margin: int | None = None
            The width of a bin, in parameters (prenas: 1000000).
        selector: str | None = None
            released elects isomers, scores and bins as PreNAS's public code does (ours: exact
            allocation, bins of margin) (prenas: ours).
        grouping: str | None = None
            Isomers have the same multiset of choices, as in PreNAS's public code, or the same
            totals, as in its appendix B (prenas: multiset).
        weights_seeds: int | None = None
            The number of passes, with other weights each, over which the gains that elect an isomer
            are averaged; with several, how alike they elect is printed (prenas: 1).
        evaluations: int | None = None
            The number of architectures evaluated (random: 33, regularised: 500).
        population: int | None = None
            The size of the population (regularised: 100, trazor: 50).
        tournament: int | None = None
            The number of members drawn, the best of which is mutated (regularised: 25).
        mutations: int | None = None
            The number of mutants per step (trazor: 25).
        crossovers: int | None = None
            The number of crossovers per step (trazor: 25).
        steps: int | None = None
            The number of steps (trazor: 160).
        inertia: float | None = None
            The share w of its velocity that a block keeps (trazor: 0.5).
        gamma1: float | None = None
            The pull towards the best of its line of descent (trazor: 0.25).
        gamma2: float | None = None
            The pull towards the best architecture so far (trazor: 0.25).
        shape_moves: float | None = None
            The share of mutants whose depth, width or stages change, not a block (trazor: 0.2).
        proportion: float | None = None
            The share of blocks that mutate or are exchanged; 0: the worst mutates, all worse ones
            are exchanged (trazor: 0.0).
        compare: bool = False
            Run every --loop with every --proxy over several seeds.
        seeds: int | None = None
            The number of seeds for compare. [default: 20]
        time_limit: float | None = None
            Stop after this many seconds; resume continues. [default: no limit]
        watts: float | None = None
            Also print the energy and the CO2 of these seconds on a machine that draws this many.
        out: str | Path | None = None
            Save the search in this directory.
        resume: bool = False
            Continue the run in out, if there is one.
        seed: int | None = None
            The seed of the loop. [default: 0]
        weights_seed: int | None = None
            The seed of untrained networks. [default: 0]
        networks: str | None = None
            Networks that are quick to draw and score, or as `lpzero rank` has them, with the same
            scores. [default: quick; those of a table as-ranked]
        no_lock: bool = False
            Do not lock the run's directory, for file systems without locks; make sure that no other
            process uses it.
        corpus: str | Path | None = None
            A text file to draw sequences from, read as bytes or through tokenizer. [default: random
            tokens]
        tokenizer: str | Path | None = None
            A tokenizer.json of Hugging Face that reads corpus. [default: bytes]
        batch: int | None = None
            The number of sequences or images in the batch. [default: the space's]
        length: int | None = None
            The number of tokens of a sequence. [default: the space's]
        tables_folder: str | Path | None = None
            The data root: the folder of the released tables.
        jobs: int | None = None
            The number of parallel processes; it does not change the result. [default: every core if
            the networks take long, else 1]
        backend: str = 'loky'
            Where processes run: loky is this machine, dask and ray are clusters.
        scheduler: str | None = None
            The address of the cluster: tcp://HOST:PORT (Dask), HOST:PORT or ray://HOST:PORT (Ray);
            see https://lpzero.readthedocs.io/en/latest/docs/cluster.html.
        device: str = 'auto'
            The device that networks run on; auto is CUDA if available.
        memory: int | None = None
            The memory that a network and its batch may take; exhaust: all processes together.
            [default: half of the free memory; exhaust: 4GB]
        cache: str | Path | None = None
            The folder of the sketches. [default: ~/.cache/lpzero]
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
    """A table trained from architectures of the space, or with `supernet=True` one supernet.

    Options:
        out: str | Path | None = None
            The run's directory, or the table's file, TABLE.json; the run is then in TABLE.run.
            [default: runs/train-SPACE]
        n_archs: int | None = None
            The number of architectures. [default: the plan's; of a space of your own 128]
        seeds: int | None = None
            The number of trainings whose mean is a target; some architectures get twice as many,
            for the noise of targets. [default: the plan's; of a space of your own 1]
        steps: int | None = None
            The number of training steps. [default: the recipe's]
        supernet: bool = False
            Train one supernet of the SPACE instead.
        dataset: str | None = None
            characters, digits (needs scikit-learn) or text. [for supernet]
        weights: str | Path | None = None
            Start from this file of weights: safetensors, or a checkpoint of AutoFormer's or
            PreNAS's code. [for supernet]
        select: str | Path | None = None
            The preferred architectures: the JSON output of `lpzero search SPACE --loop prenas`, or
            a list. [default: selected here; for supernet]
        sampler: str | None = None
            Which architecture a step trains: uniform or balanced over the preferred ones, resampled
            from their choices, or redundant (any of the space). [default: balanced; for supernet]
        batch: int | None = None
            The number of images or windows in a step. [default: 64; for supernet]
        sandwich: int | None = None
            Train the largest, the smallest and this many drawn architectures in every step
            (BigNAS); 0 trains one drawn architecture. [default: 0; for supernet]
        learning_rate: float | None = None
            The learning rate of AdamW after warm-up. [default: 0.004; for supernet]
        final_rate: float | None = None
            The learning rate at the end of the cosine. [default: 2e-05; for supernet]
        warmup: float | None = None
            The share of the steps in which the rate rises. [default: 0.05; for supernet]
        weight_decay: float | None = None
            The weight decay of AdamW. [default: 0.05; for supernet]
        smoothing: float | None = None
            The label smoothing of classes. [default: 0.1; for supernet]
        drop_path: float | None = None
            The stochastic depth of the last block. [default: 0.1; for supernet]
        clip: float | None = None
            The largest norm of a step's gradient. [default: 1.0; for supernet]
        every: int | None = None
            Steps between checkpoints, at which preferred networks are measured. [default: 250; for
            supernet]
        images: int | None = None
            The number of held-out inputs that measure a network. [default: 1500; for supernet]
        seed: int | None = None
            The seed of weights, batches and architectures. [default: 0; for supernet]
        no_lock: bool = False
            Do not lock the run's directory, for file systems without locks; make sure that no other
            process uses it.
        jobs: int = 1
            The number of parallel processes; it does not change the result.
        backend: str = 'loky'
            Where processes run: loky is this machine, dask and ray are clusters.
        scheduler: str | None = None
            The address of the cluster: tcp://HOST:PORT (Dask), HOST:PORT or ray://HOST:PORT (Ray);
            see https://lpzero.readthedocs.io/en/latest/docs/cluster.html.
    """
