"""The trainer that makes the nano tables: tasks, optimiser loop, resumable table building."""
