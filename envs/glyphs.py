"""Text as pixels: a font of three by five dots, drawn for this project, and the colours of ANSI sequences."""

import re

import numpy as np

# Each digit is a row from the top; its bits are the dots: 4 left, 2 middle, 1 right. Small letters look like capitals.
_DOTS = {
    "A": "25755", "B": "65656", "C": "34443", "D": "65556", "E": "74647", "F": "74644", "G": "34553", "H": "55755",
    "I": "72227", "J": "11152", "K": "55655", "L": "44447", "M": "57755", "N": "65555", "O": "25552", "P": "65644",
    "Q": "25563", "R": "65655", "S": "34216", "T": "72222", "U": "55557", "V": "55552", "W": "55775", "X": "55255",
    "Y": "55222", "Z": "71247", "0": "75557", "1": "26227", "2": "71747", "3": "71717", "4": "55711", "5": "74717",
    "6": "74757", "7": "71122", "8": "75757", "9": "75717", ".": "00002", ",": "00024", ":": "02020", ";": "02024",
    "-": "00700", "+": "02720", "*": "05250", "/": "11244", "\\": "44211", "(": "12221", ")": "42224", "[": "32223",
    "]": "62226", "{": "32623", "}": "62326", "|": "22222", "_": "00007", "=": "07070", "!": "22202", "?": "71202",
    "<": "12421", ">": "42124", "#": "57575", "'": "22000", '"': "55000", "%": "51245", "^": "25000", "~": "03600",
    "$": "36236", "&": "25253", "@": "25743", "`": "42000", " ": "00000", "─": "00700", "│": "22222", "·": "00200",
    "┌": "00322", "┐": "00622", "└": "22300", "┘": "22600", "├": "22322", "┤": "22622", "┬": "00722", "┴": "22700",
    "┼": "22722", "•": "02720", "→": "02720", "–": "00700", "…": "00005",
    "▲": "02277", "△": "02277", "▼": "77220", "▽": "77220", "●": "27772", "○": "25552", "◆": "02720", "←": "02720",
    "◀": "13731", "◄": "13731", "▶": "46764", "►": "46764",
}  # fmt: skip
_UNKNOWN = "77777"
_COLOURS = ((60, 60, 60), (205, 60, 50), (70, 160, 70), (200, 160, 40), (70, 110, 210), (170, 80, 180),
            (50, 160, 170), (200, 200, 200))  # fmt: skip
_BRIGHT = ((130, 130, 130), (240, 90, 80), (110, 210, 110), (245, 205, 70), (110, 150, 250), (220, 120, 230),
           (100, 215, 225), (255, 255, 255))  # fmt: skip
_COLUMNS = 24  # widths are multiples of it, so that the pictures of one game make a film
_PAPER, _INK = (24, 26, 32), (220, 222, 226)


def glyph(character: str, scale: int) -> np.ndarray:
    """The character's dots as a boolean array of 5 * scale rows and 3 * scale columns."""
    rows = [int(digit) for digit in _DOTS.get(character.upper(), _UNKNOWN)]
    dots = np.array([[bool(row & bit) for bit in (4, 2, 1)] for row in rows])
    return dots.repeat(scale, 0).repeat(scale, 1)


def write(image: np.ndarray, text: str, top: int, left: int, scale: int, colour: tuple[int, int, int]) -> None:
    """Draws a line of text into the image, one dot between the letters."""
    for index, character in enumerate(text):
        x = left + index * 4 * scale
        image[top : top + 5 * scale, x : x + 3 * scale][glyph(character, scale)] = colour


def text_picture(text: str, scale: int = 4) -> np.ndarray:
    """A picture of some lines of text, coloured as its ANSI sequences say."""
    lines = text.splitlines() or [""]
    plain = [re.sub(r"\033\[[\d;]*m", "", line) for line in lines]
    wide, high, margin = 4 * scale, 7 * scale, 3 * scale
    columns = -(-max(1, *map(len, plain), 0) // _COLUMNS) * _COLUMNS
    shape = (len(lines) * high + 2 * margin, columns * wide + 2 * margin, 3)
    image = np.full(shape, _PAPER, np.uint8)
    for row, line in enumerate(lines):
        ink, paper, column = _INK, _PAPER, 0
        for part in re.split(r"(\033\[[\d;]*m)", line):
            if part.startswith("\033["):
                ink, paper = _after(part[2:-1], ink, paper)
                continue
            for character in part:
                y, x = margin + row * high, margin + column * wide
                if paper != _PAPER:
                    image[y - scale : y + high - scale, x : x + wide] = paper
                write(image, character, y, x, scale, ink)
                column += 1
    return image


def _after(codes: str, ink: tuple[int, int, int], paper: tuple[int, int, int]) -> tuple:
    for code in (int(word or 0) for word in codes.split(";")):
        if code == 0:
            ink, paper = _INK, _PAPER
        elif 30 <= code <= 37 or 40 <= code <= 47:
            ink, paper = (_COLOURS[code % 10], paper) if code < 40 else (ink, _COLOURS[code % 10])
        elif 90 <= code <= 97:
            ink = _BRIGHT[code % 10]
    return ink, paper
