"""Help texts that are derived from presets."""

from __future__ import annotations

from lpzero.discover.settings import PRESETS, Settings
from lpzero.options import with_presets


def test_a_switch_that_a_preset_turns_on_says_so() -> None:
    texts = {entry.name: entry.help for entry in with_presets(Settings, PRESETS)}
    assert texts["same_statistic"].endswith("[default: off; released: on]")
    assert not any(": ]" in text for text in texts.values())
