"""Libraries that a command imports only where it needs them."""

# numba alone takes a third of a second to import, before it compiles anything.
COMPUTING = {"numba", "llvmlite"}
PAGES = {"trafilatura", "lxml", "resiliparse", "selectolax", "pypdfium2", "jinja2", "markdown_it"}
NETWORK = {"aiohttp", "aiodns", "prometheus_client"}
OPTIONAL = {"ray", "vllm", "torch", "pandas"}
HEAVY = COMPUTING | PAGES | NETWORK | OPTIONAL
FILES = {"numpy", "pyarrow", "yaml"}  # what reads runs and stores
