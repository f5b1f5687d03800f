"""The trainer of the nano tables: tasks, recipes, optimiser loop, rows of a table."""
