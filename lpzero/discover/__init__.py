"""Discovery campaigns: evolution of formulas with a journal, resumable at any time."""
