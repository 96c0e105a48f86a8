"""Maps of the Pacman game: how they are written, a few small ones, and what makes a map playable.

One letter per cell, one line per row:

    %  a wall            P  Pacman, exactly one        (a space or _)  an open cell
    .  food              G  a ghost, up to four
    o  a capsule

The letters are those of the layouts in Berkeley's teaching project (DeNero and Klein, "Teaching Introductory
Artificial Intelligence with Pac-Man", 2010). A map need not have a wall around it: nobody leaves it. Written on one
line, slashes divide the rows.
"""

from collections import deque
from pathlib import Path
from typing import NamedTuple

from envs.errors import InputError

WALL, FOOD, CAPSULE, PACMAN, GHOST, OPEN = "%", ".", "o", "P", "G", "_"
MOST_CELLS, MOST_GHOSTS, LONGEST_SIDE = 256, 4, 64
FAR = 255  # the distance between cells that no way joins
STEPS = ((-1, 0), (0, 1), (1, 0), (0, -1))  # north, east, south, west

MAPS = {
    "tiny": "%%%%%/%P_.%/%_%_%/%._G%/%%%%%",
    "small": "%%%%%%%%%/%P..%..G%/%.%...%.%/%.%%_%%.%/%...o...%/%.%.%.%.%/%...%..G%/%%%%%%%%%",
    "open": "%%%%%%%%/%P.....%/%......%/%..%%..%/%......%/%.....G%/%%%%%%%%",
    "corridor": "%%%%%%%%%%%/%P_...o..G%/%%%%%%%%%%%",
    "medium": (
        "%%%%%%%%%%%%%%%/%o....%.%....o%/%.%%.%...%.%%.%/%.%....%....%.%/%...%%_%_%%...%/%.%..%G_G%..%.%/"
        "%...%%%%%%%...%/%.%....P....%.%/%.%%.%...%.%%.%/%o....%.%....o%/%%%%%%%%%%%%%%%"
    ),
}


class Map(NamedTuple):
    """A map's open cells, numbered row by row, and what is on them."""

    rows: int
    columns: int
    places: list[tuple[int, int]]  # of the open cells: row, column
    food: list[int]
    capsules: list[int]
    pacman: int
    ghosts: list[int]

    def neighbours(self) -> list[list[int]]:
        """Of each open cell the open cells north, east, south and west of it; -1 for a wall."""
        index = {place: i for i, place in enumerate(self.places)}
        return [[index.get((row + down, column + right), -1) for down, right in STEPS] for row, column in self.places]

    def distances(self) -> list[list[int]]:
        """The steps between all open cells, FAR at most."""
        neighbours = self.neighbours()
        return [_distances_from(start, neighbours) for start in range(len(self.places))]


def _distances_from(start: int, neighbours: list[list[int]]) -> list[int]:
    """By breadth-first search."""
    distances = [FAR] * len(neighbours)
    distances[start] = 0
    waiting = deque([start])
    while waiting:
        cell = waiting.popleft()
        for near in neighbours[cell]:
            if near >= 0 and distances[near] == FAR and distances[cell] < FAR - 1:
                distances[near] = distances[cell] + 1
                waiting.append(near)
    return distances


def read(text: str) -> str:
    """The rows, joined by slashes, of a map given by name, as text or as the path of a text file."""
    if not isinstance(text, str):
        raise InputError(f"pacman: map={text!r} must be text")
    text = MAPS.get(text.strip(), text)
    if text.strip().endswith((".txt", ".lay")):
        text = _read_file(Path(text.strip()))
    elif not set(text) & set("%/\n") and not (PACMAN in text and set(text) <= set("P.oG_ ")):
        raise InputError(
            f"pacman: map={text!r} must be a name ({', '.join(MAPS)}), the path of a .txt or .lay file, "
            "or the rows of a map, divided by slashes"
        )
    lines = text.replace("\r", "").replace("/", "\n").replace(" ", OPEN).strip("\n").split("\n")
    return "/".join(lines)


def _read_file(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"map file {str(path)!r} does not exist") from None
    except (OSError, ValueError) as error:  # also a null byte in the path, or bytes that are no UTF-8
        raise InputError(f"map file {str(path)!r} can't be read: {error}") from None


def parse(text: str) -> Map:
    """The map of such rows; raises `InputError` for one that can't be played."""
    rows = text.split("/")
    what = f"pacman map {text if len(text) <= 60 else text[:57] + '...'!r}"
    lengths = sorted({len(row) for row in rows})
    if len(lengths) > 1:
        raise InputError(f"{what} is not rectangular: its rows have {lengths[0]} to {lengths[-1]} cells")
    unknown = sorted(set(text) - set("%.oPG_/"))
    if unknown:
        hint = "" if "%" in text else "; it is no file that exists either"
        raise InputError(f"{what} has an unknown cell {unknown[0]!r}; cells: % . o P G and space or _{hint}")
    if len(rows) > LONGEST_SIDE or lengths[0] > LONGEST_SIDE:
        raise InputError(f"{what} must have at most {LONGEST_SIDE} rows and columns")
    cells = [(place, letter) for place, letter in _letters(rows) if letter != WALL]
    found = {kind: [i for i, (_, letter) in enumerate(cells) if letter == kind] for kind in "PGo."}
    if len(found[PACMAN]) != 1:
        raise InputError(f"{what} must have one P, not {len(found[PACMAN])}")
    if len(found[GHOST]) > MOST_GHOSTS:
        raise InputError(f"{what} must have at most {MOST_GHOSTS} ghosts, not {len(found[GHOST])}")
    if not found[FOOD]:
        raise InputError(f"{what} has no food")
    if len(cells) > MOST_CELLS:
        raise InputError(f"{what} has {len(cells)} open cells, more than {MOST_CELLS}")
    places = [place for place, _ in cells]
    read_map = Map(len(rows), lengths[0], places, found[FOOD], found[CAPSULE], found[PACMAN][0], found[GHOST])
    distances = _distances_from(read_map.pacman, read_map.neighbours())
    for cell in read_map.food:
        if distances[cell] == FAR:
            row, column = places[cell]
            raise InputError(f"{what}: Pacman can't reach the food in row {row + 1}, column {column + 1}")
    return read_map


def _letters(rows: list[str]) -> list[tuple[tuple[int, int], str]]:
    return [((y, x), letter) for y, row in enumerate(rows) for x, letter in enumerate(row)]
