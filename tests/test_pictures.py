"""The README's pictures show the shipped example as it is."""

from pathlib import Path

from PIL import Image

from tests.pictures import FIGURES, IMAGES, figures
from tests.viewing import quickstart


async def test_pictures_have_the_examples_figures(tmp_path: Path) -> None:
    said = figures(await quickstart(tmp_path))
    pictures = sorted(IMAGES.glob("*.png"))
    assert [one.stem for one in pictures] == ["leaderboard", "report"]
    for path in pictures:
        with Image.open(path) as picture:
            assert picture.info[FIGURES] == said, "`make pictures` takes them anew"
