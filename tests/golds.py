"""Gold of published benchmarks, for tests."""

GOLD = {
    "qsr": [
        "Does it give a figure for cold weather? Yes=2, No=0",
        "Are boilers compared? Fully=2, Partially=1, No=0",
    ],
    "fak": ["heat pumps", "defrost cycle"],
    "fdk": ["gas boiler"],
    "tsl": ["https://iea.org/heat-pumps", "https://energy.gov/other"],
}
