"""The claims of docs/results.md: rows of the experiments' pages, by their first cells."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Claims:
    """Rows of a table in a section of a page of `experiments`, and the columns that are shown.

    `beside` (what is printed, or what ours is compared with) and `n` are columns or, where the
    table has none, words that stand in the section. A row's last cell may end in a *.
    """

    what: str
    page: str
    section: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    ours: str
    beside: str = ""
    interval: str = ""
    n: str = ""
    by: int = 0  # which of the commands in the line of measurement


def _of(*labels: str) -> tuple[tuple[str, ...], ...]:
    """Rows of which the first cell is enough."""
    return tuple((label,) for label in labels)


_T3, _T4 = ("LPZero Table 3",), ("LPZero Table 4",)
_RECIPES = "The recipes of the public code"
PAPERS = {
    "LPZero": (
        Claims("rho on FlexiBERT, published dimensions", "lpzero", (*_T3, "Measured"),
               _of("lpzero-flexibert", "eznas", "attention-confidence", "parameters", "synflow",
                   "depth"), "public setting", "printed", "interval", "500"),
        Claims("rho on FlexiBERT, true dimensions", "lpzero", (*_T3, "Measured"),
               _of("lpzero-flexibert", "depth-sqrt-width"), "true setting", "printed", "interval",
               "500"),
        Claims("Pearson's correlation by the released recipes, which Table 3 prints", "lpzero",
               (*_T3, _RECIPES), _of("lpzero-flexibert", "eznas", "attention-confidence"),
               "Pearson of released", "printed", n="n"),
        Claims("rho on gpt2-wt103", "lpzero", (*_T4, "Measured"),
               _of("lpzero-gpt2", "head-importance", "snip", "decoder-parameters", "grasp",
                   "synflow", "eznas", "jacobian-cosine", "attention-parameters"),
               "ours", "printed", "interval", "200"),
        Claims("rho on gpt2-wt103 by the released recipes", "lpzero", (*_T4, _RECIPES),
               (("logsynflow", "200"), ("activation-distance", "200"), ("synflow", "200"),
                ("grasp", "100")), "released recipe", "printed", n="n"),
        Claims("rho of GraSP as the authors saved its scores", "lpzero", (*_T4, _RECIPES),
               (("all", "200"),), "saved scores", "0.922", n="n"),
        Claims("test rho on FlexiBERT after 1,080 evaluations", "lpzero",
               ("Figures 6", "Measured"), _of("evolution (80, 2 unaries)", "random search"),
               "rho test", n="5 seeds"),
    ),
    "ETAS": (
        *(Claims(f"rho on AutoFormer, {data}", "etas", ("Table 3", "Measured"),
                 _of("ntsr", "sept", "parameters", "depth-sqrt-width"), "ours", f"{data} printed",
                 n="100") for data in ("CIFAR-100", "Flowers", "Chaoyang")),
        Claims("rho on gpt2-wt103, three seeds of the weights", "etas", ("Three seeds, all 200",),
               _of("ntsr", "ntkt", "sept", "parameters", "decoder-parameters"), "ours", "printed",
               n="200"),
        Claims("rho of NTKT and SEPT mixed, by the weight of NTKT", "etas",
               ("Figure 2: mixtures",), _of("0.0", "0.5", "1.0"), "gpt2-wt103", n="40"),
        Claims("evaluations until one is among the best 1%", "etas", ("Figure 1 (d) and Table 5",),
               tuple(("the table's 200 rows", f"etas, {name}")
                     for name in ("none", "parameters", "ntsr")), "needed", n="five seeds"),
        Claims("MAPD in percent of searches after three evaluations", "etas",
               ("Figure 1 (d) and Table 5",), _of("none", "parameters", "ntsr"), "after 3",
               "printed MAPD %", "its interval", "five seeds", by=1),
    ),
    "T-Razor": (
        Claims("accuracy of the winner among 50 of PiT", "t_razor", ("Table V",),
               _of("random, dss", "random, dss++", "evolution, dss++"), "pit-c100",
               "printed, PiT", n="40 seeds"),
        Claims("Kendall's tau, AutoFormer, distilled CIFAR-100", "t_razor", ("Figures 2",),
               _of("diversity, MSA", "saliency, MLP", "saliency, MSA",
                   "nuclear norm of the MSA's weights"), "AutoFormer", "printed", n="100"),
        Claims("diversity of the published networks", "t_razor", ("Table VI: PiT",),
               _of("PiT-Ti", "PiT-XS", "PiT-S"), "diversity", "printed diversity"),
        Claims("rho on distilled CIFAR-100, PiT", "rankings", ("PiT",),
               _of("dss", "parameters", "attention-parameters"), "c100-kd", n="100"),
    ),
    "PreNAS": (
        Claims("rho between one pass and SNIP of every subnet", "prenas", ("Table 8: one pass",),
               (("all", "150"), ("hidden 192", "56")), "one pass", n="n"),
        Claims("milliseconds per subnet", "prenas", ("Table 8: one pass",),
               _of("one pass", "each subnet"), "ms per subnet", n="subnets"),
        Claims("mean best rank by layer among released isomers (half is chance)", "prenas",
               ("Mean best rank",),
               _of("autoformer-c100-kd", "autoformer-flowers-kd", "autoformer-chaoyang-kd",
                   "autoformer-imagenet"), "SNIP by layer", "0.099 and 0.180", n="100"),
        Claims("mean best rank by layer in nano supernets (half is chance)", "prenas",
               ("Tables 7 and 8: mean",),
               _of("1 (ratios)", "2 (heads)"), "SNIP by layer", "0.099 and 0.180", n="16"),
        Claims("accuracy of preferred networks minus redundant training, nano scale", "prenas",
               ("Figures 4 and 5",), _of("uniform", "resampled", "balanced"), "minus redundant",
               n="three seeds"),
        Claims("accuracy of an isomer trained alone minus a random one", "prenas",
               ("Table 4: isomers",), _of("SNIP by layer (PreNAS)", "SNIP"), "minus random",
               n="three seeds"),
    ),
    "Training-free": (
        Claims("Kendall's tau on FlexiBERT, published dimensions", "training_free",
               ("Measured, in the published",), _of("parameters", "attention confidence"),
               "not (Figure 11)", "printed", n="500"),
        Claims("Kendall's tau on FlexiBERT by the released recipes", "training_free", (_RECIPES,),
               _of("attention-confidence", "attention-confidence-normalised"), "its tau",
               "printed tau", n="n"),
        Claims("Kendall's tau of recurrent cells, Penn Treebank", "training_free",
               ("Figures 1 and 5",),
               _of("hidden covariance, layer 1", "synaptic saliency", "parameters"), "ours, 275",
               "published, 275", n="275"),
        Claims("rho between two initialisations of recurrent cells", "training_free",
               ("Figures 7 and 9",), _of("hidden covariance, layer 1", "Jacobian cosine"),
               "weights, ours", "weights, released", n="ten"),
        Claims("mean GLUE after steps of pretraining", "training_free", ("Figure 6",),
               _of("100,000 in the file", "1,000,000", "the benchmark"), "mean", n="ten"),
    ),
    "Later papers": (
        Claims("rho on FlexiBERT, published dimensions", "rankings", ("Printed numbers",),
               _of("swap", "w-pca", "v-pca"), "rho", "rho printed", "rho ci", "500"),
    ),
}  # fmt: skip

_SPLITS = ("The default rule",)
OURS = {
    "Recurrent cells: test rho of what the default rule chooses, beside the best count": (
        Claims("median test rho, wins, ties and losses against the count", "beyond_counting",
               _SPLITS, _of("nano-rnn", "rnn-ptb"), "nested", "best count", "against the count",
               "splits"),
        Claims("median test rho over ten splits, least", "recurrent", (),
               (("rnn-wikitext2 (289)", "discovered, chosen on train and valid"),
                ("rnn-wikitext2 (289)", "best count")), "median", "", "least", "289"),
    ),
    "Decoders": (
        Claims("median test rho, wins, ties and losses against the count", "beyond_counting",
               _SPLITS, _of("nano-gpt2", "gpt2-wt103"), "nested", "best count",
               "against the count", "splits"),
        Claims("rho of the best count over all rows", "decoders", ("What was found",),
               (("gpt2-wt103", "best count*"), ("transformer-xl", "best count*"),
                ("openlm", "best count*")), "rho", n="all rows"),
        Claims("rho of a formula found on the other tables of decoders", "engine_proxies",
               ("Decoders",), _of("gpt2-wt103", "openlm", "transformer-xl"), "formula",
               "best counter", n="all its rows"),
        Claims("median test rho, best of chains of two chosen on half, range", "held_out",
               ("Measured: test rho",),
               _of("rho, sum over blocks", "counter: attention parameters"), "gpt2-wt103",
               n="five splits"),
    ),
    "Encoders": (
        Claims("median test rho, wins, ties and losses against the count", "beyond_counting",
               _SPLITS, _of("flexibert", "nano-flexibert"), "nested", "best count",
               "against the count", "splits"),
        Claims("median test rho, best of chains of two chosen on half, range", "held_out",
               ("Measured: test rho",), _of("rho, sum over blocks", "counter: depth·√width"),
               "flexibert", n="five splits"),
        Claims("rho of a formula found on six other tables", "engine_proxies", ("Both kinds",),
               _of("flexibert"), "formula", "best counter", n="table left out"),
    ),
    "Vision transformers": (
        Claims("median test rho, wins, ties and losses against the count", "beyond_counting",
               _SPLITS, _of("autoformer-c100-kd", "autoformer-flowers-kd",
                            "autoformer-chaoyang-kd", "pit-c100-kd", "pit-flowers-kd",
                            "pit-chaoyang-kd"), "nested", "best count", "against the count",
               "splits"),
    ),
    "Published columns combined": (
        Claims("median test rho and tau, splits ahead of the best column", "columns",
               ("What was found",),
               _of("nasbench301", "recurrent"), "formula: rho, tau",
               "best single column: rho, tau", "splits ahead",
               "rows to choose on, test rows, splits"),
    ),
    "Predictors": (
        Claims("median test rho of the predictor, beside the formula", "beyond_counting", _SPLITS,
               _of("nano-rnn", "nano-gpt2", "nano-flexibert", "autoformer-c100-kd", "pit-c100-kd",
                   "pit-chaoyang-kd"), "predictor", "nested",
               n="splits"),
        Claims("rho of a predictor fitted to the other tables of decoders", "engine_proxies",
               ("Decoders",), _of("gpt2-wt103", "openlm", "transformer-xl"), "predictor",
               "best counter", n="all its rows"),
    ),
    "A fixed number of trainings": (
        Claims("minus the validation loss of nano-gpt2 after 12 trainings", "nano_story",
               ("Measured",), _of("ETAS, discovered formula", "ETAS, parameters", "random search",
                                  "ETAS, no proxy"), "trained again", n="three searches"),
    ),
    "Costs": (
        Claims("seconds on two cores, beside those of an earlier version", "benchmarks",
               ("Speed before and after",),
               _of("chains of two, flexibert, from sketches",
                   "products of two terms, flexibert, from branch tables",
                   "paper campaign, gpt2-wt103, from branch tables",
                   "rank of one formula, flexibert, from sketches"), "seconds after",
               "seconds before", n="repetitions"),
        Claims("extraction of sketches by a step of training", "benchmarks",
               ("What extraction costs",), _of("flexibert", "gpt2-wt103"), "extract / bare",
               n="archs"),
    ),
}  # fmt: skip
