"""DSS of ETAS's Table 3 in three columns: printed, by the predecessor's public code, and ours.

    python -m experiments.etas.table3_released --every 5

Of the table's proxies only DSS has public code of its authors whose recipe differs from ours. The
three tables share their architectures, so every network runs once.
"""

from experiments.etas.table3 import TABLES
from experiments.released_columns import PrintedTable, released_command

main = released_command(PrintedTable("ETAS Table 3", TABLES, proxies=("dss",)))

if __name__ == "__main__":
    main()
