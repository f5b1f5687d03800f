"""Figures: each module holds the data of one kind of figure and draws it.

Data first, a frozen value that a test can look at; then `draw(data)`, a matplotlib figure; then
`style.save(figure, path)`, as PDF, PNG or SVG, with equal bytes for equal data.
"""
