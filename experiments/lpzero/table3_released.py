"""LPZero Table 3 in three columns: printed, by the recipes of the public code, and ours.

    python -m experiments.lpzero.table3_released --every 5 --batch 16 --length 64

All models have the published dimensions. The paper prints Pearson's correlation, without its sign,
under the name of Spearman's: compare the printed figure with the magnitude of Pearson's. The
published formula is scored with H as the authors' code takes it (`--definitions released`).
"""

from experiments.released_columns import PrintedTable, released_command

TABLE = PrintedTable("LPZero Table 3", ("flexibert",), "flexibert-upstream", batch=(128, 64))
main = released_command(TABLE)

if __name__ == "__main__":
    main()
