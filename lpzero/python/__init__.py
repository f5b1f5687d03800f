"""The Python face: what `import lpzero` offers, as objects that a notebook shows."""
