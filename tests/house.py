"""The floors of the house: a package imports only from those below its own."""

# The packages of a folder, from the ground up. A package imports only itself and packages on floors below its own;
# those on one floor do not know each other. docs/architecture.md says what each is.
FLOORS = {
    "engine": (
        ("errors", "file_kinds"),
        ("config", "formats"),
        ("store",),
        ("runs", "telemetry"),
        ("evaluation", "trial"),
        ("cluster",),
        ("rewards",),
        ("statistics", "serving"),
        ("tables", "adapters"),
        ("exports", "viewer.data"),
        ("viewer.pages",),
        ("viewer",),
        ("commands",),
        ("library",),
        ("package",),
    ),
    "scoring": (
        ("kernels.base",),
        ("kernels.resampling", "kernels.agreement", "kernels.matching"),
        ("kernels.comparison",),
        ("kernels",),
        ("contract",),
        ("answers", "text"),
        ("deepresearch_bench", "livedrbench", "dr3_eval", "drmi_bench", "gold", "pairwise", "rubrics"),
    ),
}
