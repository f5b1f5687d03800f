"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# A busy machine is no failure.
settings.register_profile("lpzero", deadline=None)
settings.load_profile("lpzero")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The data root with the released tables; tests that need it are skipped without."""
    root = os.environ.get("LPZERO_DATA")
    if not root:
        pytest.skip("LPZERO_DATA is not set: the released tables are not at hand")
    return Path(root)
