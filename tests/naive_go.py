"""A slow second opinion on Go: boards as tuples, chains by flood fill, former positions in a set."""

from collections.abc import Iterator

from envs.go import Go

Board = tuple[int, ...]  # 0 empty, 1 black, 2 white; row by row from the top left


def board_of(game: Go, state) -> Board:
    """The cells of a state of ours."""
    return tuple(int(cell) for cell in game.cells(state).reshape(-1))


def diagram(game: Go, board: Board, mover: str = "b") -> str:
    """The text of a position with that board."""
    rows = [board[i : i + game.size] for i in range(0, game.points, game.size)]
    return "/".join("".join(".xo"[cell] for cell in row) for row in rows) + " " + mover


class NaiveGo:
    def __init__(self, columns: int, rows: int, suicide: bool = False, superko: bool = True):
        self.columns, self.rows, self.suicide, self.superko = columns, rows, suicide, superko
        self.board: Board = (0,) * (columns * rows)
        self.boards = [self.board]  # after each ply
        self.turn, self.captured = 1, [0, 0, 0]  # captured stones by their colour

    def neighbours(self, cell: int) -> Iterator[int]:
        y, x = divmod(cell, self.columns)
        for v, u in ((y - 1, x), (y, x - 1), (y, x + 1), (y + 1, x)):
            if 0 <= v < self.rows and 0 <= u < self.columns:
                yield v * self.columns + u

    def region(self, board: Board, cell: int) -> tuple[set[int], set[int]]:
        """The connected cells of the same content, and what lies around them."""
        inside, around, waiting = {cell}, set(), [cell]
        while waiting:
            for n in self.neighbours(waiting.pop()):
                if board[n] != board[cell]:
                    around.add(n)
                elif n not in inside:
                    inside.add(n)
                    waiting.append(n)
        return inside, around

    def liberties(self, board: Board, cell: int) -> int:
        return sum(board[n] == 0 for n in self.region(board, cell)[1])

    def is_possible(self, board: Board) -> bool:
        """Whether every chain has a liberty."""
        return all(colour == 0 or self.liberties(board, cell) for cell, colour in enumerate(board))

    def after(self, board: Board, cell: int, colour: int) -> Board | None:
        """The board after that stone; None for a suicide where it is forbidden."""
        cells = list(board)
        cells[cell] = colour
        for side in (3 - colour, colour):
            now = tuple(cells)
            dead = [c for n in (*self.neighbours(cell), cell) if now[n] == side for c in self.dead(now, n)]
            if dead and side == colour and not self.suicide:
                return None
            for c in dead:
                cells[c] = 0
        return tuple(cells)

    def dead(self, board: Board, cell: int) -> set[int]:
        inside, around = self.region(board, cell)
        return set() if any(board[n] == 0 for n in around) else inside

    def legal(self) -> list[int]:
        """The cells on which the mover may play."""
        cells = []
        for cell, colour in enumerate(self.board):
            if colour == 0:
                board = self.after(self.board, cell, self.turn)
                former = self.boards if self.superko else self.boards[-2:]
                if board is not None and board not in former:
                    cells.append(cell)
        return cells

    def play(self, cell: int | None) -> None:
        """A stone, legal or not, or None for a pass."""
        if cell is not None:
            board = self.after(self.board, cell, self.turn)
            assert board is not None
            for colour in (1, 2):
                before = self.board.count(colour) + (colour == self.turn)
                self.captured[colour] += before - board.count(colour)
            self.board = board
        self.boards.append(self.board)
        self.turn = 3 - self.turn

    def score(self) -> int:
        """Black's area minus White's."""
        total = self.board.count(1) - self.board.count(2)
        for cell, colour in enumerate(self.board):
            if colour == 0:
                reached = {self.board[n] for n in self.region(self.board, cell)[1]}
                total += (reached == {1}) - (reached == {2})
        return total

    def is_eye(self, cell: int, colour: int) -> bool:
        """All neighbours of the colour, the opponent on no diagonal at the edge and on one at most elsewhere."""
        if self.board[cell] or any(self.board[n] != colour for n in self.neighbours(cell)):
            return False
        y, x = divmod(cell, self.columns)
        corners = [(y + dy, x + dx) for dy in (-1, 1) for dx in (-1, 1)]
        inside = [v * self.columns + u for v, u in corners if 0 <= v < self.rows and 0 <= u < self.columns]
        return sum(self.board[c] == 3 - colour for c in inside) < (2 if len(inside) == 4 else 1)
