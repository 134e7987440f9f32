"""One report's pages are its own affair: whatever it cites, the figures and rewards of others stay as they are."""

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adjudge.engine.commands.evaluate import evaluate_async
from adjudge.engine.config.run import RunConfig
from adjudge.engine.rewards.scorer import open_rewards
from tests.outages import scores
from tests.servers.base import Exchange, Server
from tests.servers.hostile import busy_for_an_hour, silent
from tests.worlds import lines, world

PATHS = ("/busy", "/hung")
PATIENCE = 12.0
MANY = 9  # more than the requests in a row after which a silent site is given up


async def bridges(to: Exchange) -> None:
    said = "".join(
        f"<p>The bridge number {n} opened in {1900 + n} and was built of steel.</p>" for n in range(9)
    )
    await to.reply(
        f"<html><head><title>Bridges</title></head><body><article>{said}</article></body></html>".encode()
    )


def honest(pages: Server, name: str, false: int = 0) -> str:
    """Four true statements and some false ones, each on a page of its own of the site that all share."""
    true = [
        f"The bridge number {n} opened in {1900 + n} and was built of steel [a]({pages.url(f'/good/{name}{n}')})."
        for n in range(4)
    ]
    wrong = [f"Elephants flew {n} zeppelins [b]({pages.url(f'/good/{name}x{n}')})." for n in range(false)]
    return "\n\n".join(true + wrong)


def sabotage(pages: Server, path: str, many: int) -> str:
    return "\n\n".join(f"Marmalade {n} is blue [c]({pages.url(f'{path}/{n}')})." for n in range(many))


def config_of(folder: Path, pages: Server, texts: dict[str, str]) -> Path:
    fetch = {
        "mode": "live",
        "allow": [pages.address],
        "timeouts": {"connect": 2.0, "read": 1.0, "total": 1.0},
        "patience_s": PATIENCE,
    }
    config = world(
        folder,
        systems=0,
        tasks=1,
        protocols=["fact"],
        fetch=fetch,
        reward={"metric": "c_acc", "deadline_s": 4 * PATIENCE},
    )
    rows = [{"task_id": "0", "system": name, "text": said} for name, said in texts.items()]
    lines(folder / "reports" / "reports.jsonl", rows)
    return config


@contextlib.contextmanager
def site() -> Iterator[Server]:
    routes = {f"/good/{name}{n}": bridges for name in ("a", "b", "ax", "bx") for n in range(4)}
    routes |= {f"/busy/{n}": busy_for_an_hour for n in range(MANY)}
    routes |= {f"/hung/{n}": silent for n in range(MANY)}
    with Server(routes=routes) as server:
        yield server


@pytest.fixture
def pages() -> Iterator[Server]:
    with site() as server:
        yield server


async def figures(folder: Path, path: str = "") -> dict[tuple[str, str], float | None]:
    """Scores of two systems on a site of their own, beside one that cites its `path`."""
    with site() as pages:
        texts = {"wren": honest(pages, "a", 1), "tern": honest(pages, "b", 2)}
        attack = {"attacker": sabotage(pages, path, MANY)} if path else {}
        await evaluate_async(RunConfig.load(config_of(folder, pages, {**attack, **texts})))
    return {(row["system"], row["metric"]): row["value"] for row in scores(folder) if row["system"] in texts}


async def rewards(folder: Path, path: str) -> list[float | None]:
    """Rewards of two honest rollouts in a group with one that cites `path` of their site."""
    with site() as pages:
        config = RunConfig.load(config_of(folder, pages, {"wren": honest(pages, "a")}))
        group = [sabotage(pages, path, MANY), honest(pages, "a"), honest(pages, "b", 1)]
        async with open_rewards(config) as scorer:
            found = await scorer.score([{"task_id": "0", "text": text} for text in group])
    return [reward.value for reward in found[1:]]


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The figures alone, figures and rewards beside each saboteur: at once, for they wait for their sites."""
    names = ("alone", *(f"{kind} {path}" for kind in ("figures", "rewards") for path in PATHS))
    folders = [tmp_path_factory.mktemp("site") for _ in names]

    async def all_of_them() -> list[Any]:
        alone, *others = folders
        return await asyncio.gather(
            figures(alone),
            *map(figures, others[:2], PATHS),
            *map(rewards, others[2:], PATHS),
        )

    return dict(zip(names, asyncio.run(all_of_them()), strict=True))


@pytest.mark.parametrize("path", PATHS)
def test_figures_stay_beside_a_saboteur_of_the_same_site(beside: dict[str, Any], path: str) -> None:
    assert beside["alone"] == beside[f"figures {path}"]
    assert beside["alone"]["wren", "c_acc"] == pytest.approx(0.8)


@pytest.mark.parametrize("path", PATHS)
def test_rewards_stay_beside_a_saboteur_of_the_same_site(beside: dict[str, Any], path: str) -> None:
    assert beside[f"rewards {path}"] == [1.0, pytest.approx(0.8)]


KINDS = ("good", "gone", "busy", "hung")
REPORTS = st.lists(
    st.lists(st.sampled_from(KINDS), min_size=1, max_size=5).filter(lambda kinds: kinds.count("hung") < 3),
    min_size=2,
    max_size=4,
)


@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(reports=REPORTS, saboteur=st.sampled_from(PATHS), data=st.data())
def test_reports_come_and_go_without_changing_others(pages, reports, saboteur, data) -> None:
    """Whatever pages of one site reports cite, and whoever is beside them in which order, each keeps its outcomes."""

    def said(name: int, kinds: list[str]) -> str:
        places = {"good": f"/good/r{name}-", "gone": f"/gone/r{name}-", "busy": "/busy/", "hung": "/hung/"}
        return "\n\n".join(
            f"The bridge number {n} opened in {1900 + n} [a]({pages.url(f'{places[kind]}{n}')})."
            for n, kind in enumerate(kinds)
        )

    pages.routes |= {f"/good/r{name}-{n}": bridges for name in range(4) for n in range(5)}
    texts = {f"r{name}": said(name, kinds) for name, kinds in enumerate(reports)}
    beside = {**texts, "attacker": sabotage(pages, saboteur, MANY)}
    fewer = data.draw(st.permutations(list(beside)).map(lambda names: names[: len(texts)]))

    async def outcomes(chosen: list[str]) -> dict[tuple[str, str], object]:
        with TemporaryDirectory() as folder:
            config = config_of(Path(folder), pages, {name: beside[name] for name in chosen})
            await evaluate_async(RunConfig.load(config))
            return {
                (row["system"], row["metric"]): (row["value"], row["low"], row["high"])
                for row in scores(Path(folder))
                if row["system"] != "attacker"
            }

    async def both_ways() -> list[dict[tuple[str, str], object]]:
        return await asyncio.gather(outcomes(list(texts)), outcomes(fewer))

    found = asyncio.run(both_ways())
    both = found[0].keys() & found[1].keys()
    assert {key: found[0][key] for key in both} == {key: found[1][key] for key in both}
