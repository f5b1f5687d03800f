"""Energy and CO2 of a computation, from its seconds and the watts that the user states.

Nothing is measured but time. The factors are those of Strubell et al. (2019), which papers on
language models use: a data centre takes 1.58 times what its machines take, and a kilowatt-hour of
the grid of the United States releases 0.954 pounds of CO2.
"""

from __future__ import annotations

from dataclasses import dataclass

from lpzero.errors import InputError

OVERHEAD = 1.58  # of the data centre: its power over that of its machines
POUNDS_PER_KWH = 0.954
GRAMS_PER_POUND = 453.59237
_SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Footprint:
    """`seconds` on hardware that draws `watts`."""

    seconds: float
    watts: float

    def __post_init__(self) -> None:
        if not (self.watts > 0 and self.seconds >= 0):
            raise InputError(
                f"{self.watts:g} watts for {self.seconds:g} seconds: expected watts above 0"
            )

    @property
    def watt_hours(self) -> float:
        """The energy, with the data centre's share."""
        return OVERHEAD * self.watts * self.seconds / _SECONDS_PER_HOUR

    @property
    def pounds(self) -> float:
        """The CO2 in pounds, the unit of the papers."""
        return POUNDS_PER_KWH * self.watt_hours / 1000

    @property
    def grams(self) -> float:
        return GRAMS_PER_POUND * self.pounds

    def to_json(self) -> dict[str, float]:
        """The assumptions and what follows from them."""
        return {
            "watts": self.watts,
            "overhead": OVERHEAD,
            "pounds_per_kwh": POUNDS_PER_KWH,
            "watt_hours": self.watt_hours,
            "co2_grams": self.grams,
        }

    def __str__(self) -> str:
        return (
            f"{self.watt_hours:.3g} Wh and {self.grams:.3g} g of CO2, if the machine draws"
            f" {self.watts:g} W (times {OVERHEAD} for the data centre, {POUNDS_PER_KWH} lb per kWh)"
        )
