"""Figures 2 and 11 in three columns: printed, by the recipes of the public code, and ours.

    python -m experiments.training_free.released --every 5 --batch 16 --length 64

The paper prints Kendall's tau, and Pearson's correlation as rho. All models have the published
dimensions.
"""

from experiments.released_columns import PrintedTable, released_command

PROXIES = (
    *("attention-confidence", "attention-confidence-normalised", "parameters"),
    *("activation-distance", "jacobian-cosine", "jacobian-cosine-large-noise"),
    "jacobian-cosine-more-noised",
)
COLUMNS = (
    *("proxy", "n", "printed tau", "its tau", "Pearson of released", "our tau"),
    "Pearson of ours",
)
main = released_command(
    PrintedTable(
        *("Training-free, section 5.2", ("flexibert",), "flexibert-upstream"),
        *(PROXIES, (128, 64), COLUMNS),
    )
)

if __name__ == "__main__":
    main()
