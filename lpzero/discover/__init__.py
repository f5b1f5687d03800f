"""Discovery campaigns: evolution of formulas, written down as it goes, resumable at any moment."""
