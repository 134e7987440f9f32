"""DeepResearch Bench (Du et al., 2025): RACE for a report's quality, FACT for its citations."""
