"""Campaigns: a search that is written down as it goes and can go on after anything."""

from lpzero.campaign.bench import Bench
from lpzero.campaign.errors import CampaignError, WritingError
from lpzero.campaign.ground import Ground
from lpzero.campaign.keeping import Directory, Memory
from lpzero.campaign.running import Callback, Outcome, Progress, run
from lpzero.campaign.saved import Config

__all__ = [
    "Bench",
    "Callback",
    "CampaignError",
    "Config",
    "Directory",
    "Ground",
    "Memory",
    "Outcome",
    "Progress",
    "WritingError",
    "run",
]
