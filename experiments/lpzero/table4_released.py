"""LPZero Table 4 with the recipes of the public code beside the printed figures and ours.

    python -m experiments.lpzero.table4_released --batch 4 --length 192 --jobs 2

Pearson's correlation is printed too, because the paper prints it under the name of Spearman's in
its Table 3. With `--same-batch` ours run on the recipes' batch, not on the space's own: our GraSP
is then the released one without dropout.
"""

from experiments.released_columns import PrintedTable, released_command

PROXIES = (
    *("grasp", "logsynflow", "attention-confidence", "activation-distance", "synflow", "eznas"),
    "jacobian-cosine",
)
TABLE = PrintedTable("LPZero Table 4", ("gpt2-wt103",), proxies=PROXIES, batch=(16, 192))
main = released_command(TABLE)

if __name__ == "__main__":
    main()
