"""The version of the engine, read by the build and written into everything it saves."""

VERSION = "0.2.0"
DOCUMENTATION = "https://lpzero.readthedocs.io/en/latest"


def documentation(page: str) -> str:
    """The address of a page of the documentation, such as campaigns."""
    return f"{DOCUMENTATION}/docs/{page}.html"
