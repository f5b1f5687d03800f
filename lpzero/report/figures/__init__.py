"""Figures: each module defines the data of one kind of figure and draws it.

First the data, a frozen value that a test can inspect; then `draw(data)`, a matplotlib figure; then
`style.save(figure, path)`, as PDF, PNG or SVG, with equal bytes for equal data.
"""
