"""The command line: one module per verb, which `main` imports when the verb is called."""
