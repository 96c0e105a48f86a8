"""Pacman: positions by hand, a naive second implementation, exact expectimax values on tiny maps, broken maps."""

import random
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from referees import look, result, step

from envs import specs
from envs.check import check_game
from envs.errors import InputError
from envs.game import CHANCE, TERMINAL, legal_actions
from envs.pacman import LOST, WON, Pacman
from envs.pacman_maps import MAPS
from envs.playouts import play_random_games
from envs.registry import make

STEPS = {"north": (-1, 0), "east": (0, 1), "south": (1, 0), "west": (0, -1), "stop": (0, 0)}
ORDER = list(STEPS)


class Naive:
    """The rules in the docstring's words, on sets of places, with nothing shared with the game's code.

    A state is (food, capsules, pacman, ghosts, score, steps, turn, end); a ghost is (place, heading, fear).
    """

    def __init__(self, game):
        rows = MAPS.get(game.map, game.map).split("/")
        self.places = {(y, x): letter for y, row in enumerate(rows) for x, letter in enumerate(row) if letter != "%"}
        self.max_steps, self.reversing = game.max_steps, game.reversing
        self.homes = [place for place, letter in self.places.items() if letter == "G"]

    def start(self):
        food, capsules = ({p for p, letter in self.places.items() if letter == kind} for kind in ".o")
        pacman = next(place for place, letter in self.places.items() if letter == "P")
        ghosts = tuple((home, None, 0) for home in self.homes)
        return frozenset(food), frozenset(capsules), pacman, ghosts, 0, 0, 0, None

    def exits(self, place):
        found = [name for name in ORDER[:4] if tuple(np.add(place, STEPS[name])) in self.places]
        return found

    def moves(self, state):
        """None at the end; the names of the moves otherwise."""
        _, _, pacman, ghosts, _, steps, turn, end = state
        if end or (turn == 0 and steps == self.max_steps):
            return None
        if turn == 0:
            return [*self.exits(pacman), "stop"]
        place, heading, _ = ghosts[turn - 1]
        exits = self.exits(place)
        if not self.reversing and heading in ORDER[:4]:
            back = ORDER[(ORDER.index(heading) + 2) % 4]
            exits = [name for name in exits if name != back] or exits
        return exits or ["stop"]

    def play(self, state, name):
        food, capsules, pacman, ghosts, score, steps, turn, end = state
        ghosts = [list(ghost) for ghost in ghosts]
        if turn == 0:
            pacman = tuple(int(n) for n in np.add(pacman, STEPS[name]))
            steps, score = steps + 1, score - 1
            if pacman in food:
                food, score = food - {pacman}, score + 10
                if not food:
                    score, end = score + 500, "won"
            if pacman in capsules:
                capsules = capsules - {pacman}
                for ghost in ghosts:
                    ghost[2] = 20
        else:
            moved = ghosts[turn - 1]
            moved[0] = tuple(int(n) for n in np.add(moved[0], STEPS[name]))
            moved[1] = None if self.reversing else name
        if end != "won":
            for number, ghost in enumerate(ghosts):
                if ghost[0] == pacman and not end:
                    if ghost[2] > 0:
                        ghost[:] = self.homes[number], None, 0
                        score += 200
                    if ghost[0] == pacman:
                        score, end = score - 500, "lost"
        if turn > 0:
            ghosts[turn - 1][2] = max(0, ghosts[turn - 1][2] - 1)
        turn = 0 if end else (turn + 1) % (1 + len(ghosts))
        return food, capsules, pacman, tuple(map(tuple, ghosts)), score, steps, turn, end

    def value(self, state, memory):
        """The expected score under best play, as a fraction."""
        if state not in memory:
            names = self.moves(state)
            if names is None:
                memory[state] = Fraction(state[4])
            else:
                children = [self.value(self.play(state, name), memory) for name in names]
                memory[state] = max(children) if state[6] == 0 else sum(children) / len(children)
        return memory[state]


def value(game, state, memory):
    """The same through the game's own code."""
    name = state.tobytes()
    if name not in memory:
        player = game.player(state)
        if player == TERMINAL:
            memory[name] = game.utility(state, 0)
            return memory[name]
        out, probabilities = np.empty(5, np.int64), np.empty(5)
        count = game.outcomes(state, out, probabilities) if player == CHANCE else game.actions(state, out)
        children = []
        for action in out[:count].tolist():
            states = np.array([state], game.state).view(np.recarray)
            game.play(states[0], action)
            children.append(value(game, states[0], memory))
        memory[name] = max(children) if player == 0 else float(np.dot(children, probabilities[:count]))
    return memory[name]


TINY = [
    Pacman("P.G", max_steps=2),
    Pacman("P_./_%_/._G", max_steps=5),
    Pacman("P_./_%_/._G", max_steps=5, reversing=False),
    Pacman(".Po_G/.%%_%", max_steps=6),
    Pacman("G_P./_%o%/__.G", max_steps=4),
    Pacman("%%%%%/%P_.%/%%%%%/%G%G%/%%%%%", max_steps=4),
    Pacman("P_./__.", max_steps=6),
]


@pytest.mark.parametrize("game", TINY, ids=lambda game: f"{game.map} {game.max_steps} {game.reversing}")
def test_expectimax_values(game):
    naive = Naive(game)
    exact = naive.value(naive.start(), {})
    assert value(game, game.new()[0], {}) == pytest.approx(float(exact), abs=1e-9)


def test_expectimax_by_hand():
    # Pacman beside the only food, the ghost beyond it: east wins at once, -1 + 10 + 500.
    game = Pacman("P.G", max_steps=2)
    assert value(game, game.new()[0], {}) == 509
    # East, and the ghost must step onto the food, its only exit. East again, and it comes on (-2 - 500) or goes back,
    # whereupon Pacman wins (-3 + 10 + 500), each with 1/2. Whoever waits has no time left to eat: -3.
    game = Pacman("P__.G", max_steps=3)
    assert value(game, game.new()[0], {}) == pytest.approx(0.5 * -502 + 0.5 * 507)
    game = Pacman("P__.G", max_steps=2)
    assert value(game, game.new()[0], {}) == -2


def test_a_capsule_by_hand():
    game = Pacman("%%%%%%%/%Po_G.%/%%%%%%%")
    state = game.parse_position("east")
    assert state.fear.tolist() == [20, 0, 0, 0] and state.score == -1 and not state.capsules.any()
    state = game.parse_position("east west")
    assert game.position_text(state) == "%%%%%%%/%____.%/%%%%%%% pacman 2,3 ghosts 2,4!19 score -1 steps 1 turn 0"
    assert "\033[94mg" in game.show(state)
    state = game.parse_position("east west east")
    assert game.position_text(state) == "%%%%%%%/%____.%/%%%%%%% pacman 2,4 ghosts 2,5 score 198 steps 2 turn 1"
    assert "\033[91mG" in game.show(state) and game.player(state) == CHANCE
    brave = game.parse_position("%%%%%%%/%____.%/%%%%%%% pacman 2,2 ghosts 2,3 score -4 steps 4 turn 1")
    game.play(brave, 3)
    assert (brave.over, brave.score, game.player(brave)) == (LOST, -504, TERMINAL)


def test_fear_passes():
    game = Pacman("oP_./%%%%/G__%")
    state, seen = game.parse_position("west"), []
    while game.player(state) != TERMINAL and len(seen) < 22:
        seen.append(int(state.fear[0]))
        game.play(state, legal_actions(game, state)[0])
        game.play(state, 4)
    assert seen == [*range(20, 0, -1), 0, 0]


def test_winning_beats_dying():
    game = Pacman("P.G")
    state = game.parse_position("east")
    assert (state.over, state.score) == (WON, 509)
    both = Pacman("P_./__G")
    end = both.parse_position("__./___ pacman 1,2 ghosts 1,3 score -1 steps 1 turn 0")
    both.play(end, 1)
    assert (end.over, end.score, both.player(end)) == (WON, 508, TERMINAL)


def test_time_runs_out_after_the_ghosts():
    game = Pacman("P_./_%_/._G", max_steps=2)
    state = game.parse_position("stop west stop")
    assert game.player(state) == CHANCE
    game.play(state, 1)
    assert game.player(state) == TERMINAL and game.utility(state, 0) == -2.0
    assert game.max_length == 4


def test_ghosts_turn_back_only_at_dead_ends():
    game = Pacman("%%%%%%/%P.._%/%%%%_%/%G___%/%%%%%%", reversing=False)
    state = game.parse_position("stop")
    assert [game.action_name(state, a) for a in legal_actions(game, state)] == ["east"]
    state = game.parse_position("stop east stop")
    assert [game.action_name(state, a) for a in legal_actions(game, state)] == ["east"]
    free = Pacman("%%%%%%/%P.._%/%%%%_%/%G___%/%%%%%%")
    state = free.parse_position("stop east stop")
    assert [free.action_name(state, a) for a in legal_actions(free, state)] == ["east", "west"]
    corner = game.parse_position("%%%%%%/%_.._%/%%%%_%/%____%/%%%%%% pacman 2,2 ghosts 4,2w steps 1 turn 1")
    assert [game.action_name(corner, a) for a in legal_actions(game, corner)] == ["east"]
    assert game.parse_action(corner, "e") == 1


GAMES = [
    Pacman("tiny"),
    Pacman("small", reversing=False),
    Pacman("medium", max_steps=30),
    Pacman("corridor"),
    Pacman("open", reversing=False, max_steps=40),
    *TINY,
]


def beside_naive(game, games, seed):
    """Random games on both sides, with every ghost's options; returns the plies and the ends that were seen."""
    rng, naive, plies, ends = random.Random(seed), Naive(game), 0, set()
    out, probabilities = np.empty(5, np.int64), np.empty(5)
    for _ in range(games):
        state, theirs = game.new()[0], naive.start()
        while True:
            player, count = look(game, state, out, probabilities)
            names = naive.moves(theirs)
            assert (player == TERMINAL) == (names is None)
            food, capsules, pacman, ghosts, score, steps, turn, end = theirs
            place = game.layout.places
            assert place[state.pacman] == pacman and (state.score, state.steps, state.turn) == (score, steps, turn)
            assert [place[state.ghosts[g]] for g in range(game.ghost_count)] == [ghost[0] for ghost in ghosts]
            assert state.fear[: game.ghost_count].tolist() == [ghost[2] for ghost in ghosts]
            assert {place[c] for c in range(len(place)) if game._has(state.food, c)} == food
            assert {place[c] for c in range(len(place)) if game._has(state.capsules, c)} == capsules
            if names is None:
                assert result(game, state, 0) == score
                ends.add(end or "time")
                break
            assert player == (0 if turn == 0 else CHANCE)
            assert [ORDER[a] for a in out[:count]] == names
            assert player != CHANCE or probabilities[:count].tolist() == [1 / count] * count
            action = int(out[rng.randrange(count)])
            step(game, state, action)
            theirs = naive.play(theirs, ORDER[action])
            plies += 1
    return plies, ends


@pytest.mark.parametrize("game", GAMES, ids=lambda game: f"{game.map[:12]} {game.max_steps} {game.reversing}")
def test_random_games_beside_the_naive_rules(game):
    plies, ends = beside_naive(game, 30, seed=1)
    assert plies >= 30 and ends <= {"won", "lost", "time"}


def test_every_end_happens():
    assert beside_naive(Pacman("P_./_%_/._G", max_steps=8), 300, seed=2)[1] == {"won", "lost", "time"}


@pytest.mark.parametrize("game", GAMES[:6], ids=lambda game: f"{game.map[:12]} {game.reversing}")
def test_conformance(game):
    report = check_game(game, states=800, texts=60, interpreted=40)
    assert report.ok, [str(broken) for broken in report.broken.values()]


def test_all_maps_share_compiled_code():
    assert len({game._numba_type_ for game in GAMES}) == 1


def test_random_play():
    assert play_random_games(make("pacman"), 50, seed=1) > 500


def test_what_pacman_sees():
    game = Pacman("%%%%%%%/%Po_G.%/%.%%%%%/%%%%%%%", max_steps=100)
    planes, numbers = np.zeros(game.observation_shape, np.float32), np.zeros(9)
    state = game.new()[0]
    game.observe(state, planes)
    assert planes[0].sum() == 28 - 6 and np.argwhere(planes[1]).tolist() == [[1, 5], [2, 1]]
    assert np.argwhere(planes[2]).tolist() == [[1, 2]] and np.argwhere(planes[3]).tolist() == [[1, 1]]
    assert np.argwhere(planes[4]).tolist() == [[1, 4]] and not planes[5:7].any() and (planes[7] == 1).all()
    game.features(state, numbers)
    named = dict(zip(game.feature_names(), numbers.tolist(), strict=True))
    assert named["food left"] == 2 and named["steps to the nearest food"] == 1
    assert named["closeness of the nearest capsule"] == 0.5 and named["closeness of the nearest ghost"] == 0.25
    state = game.parse_position("east west")
    planes[:] = 0
    game.observe(state, planes)
    game.features(state, numbers)
    named = dict(zip(game.feature_names(), numbers.tolist(), strict=True))
    assert np.argwhere(planes[5]).tolist() == [[1, 3]] and planes[6, 1, 3] == np.float32(19 / 20)
    assert named["ghosts within one step"] == 0 and named["closeness of the nearest frightened ghost"] == 0.5
    assert (game.cells(state) == 4).sum() == 22 and game.glyphs(state)[1] == ["%", "", "C", "g", "", ".", "%"]


def test_distances_beside_floyd_and_warshall():
    game = Pacman("medium")
    count = len(game.layout.places)
    far = np.full((count, count), 255)
    for a, near in enumerate(game.layout.neighbours()):
        far[a, a] = 0
        for b in near:
            if b >= 0:
                far[a, b] = 1
    for middle in range(count):
        far = np.minimum(far, far[:, middle : middle + 1] + far[middle])
    assert (game.far[:count, :count] == far).all()


# --- maps and positions as text --------------------------------------------------------------------------


def test_ways_to_give_a_map(tmp_path):
    rows = MAPS["tiny"].replace("_", " ").split("/")
    (tmp_path / "map.lay").write_text("\n".join(rows) + "\n")
    (tmp_path / "windows.txt").write_bytes("\r\n".join(rows).encode())
    for text in ("tiny", MAPS["tiny"], "\n".join(rows), str(tmp_path / "map.lay"), str(tmp_path / "windows.txt")):
        assert Pacman(text) == Pacman("tiny") and Pacman(text).map == "tiny"
    for game in GAMES:
        assert make(specs.text_of("pacman", game)) == game == eval(repr(game))
    assert make("pacman") == Pacman("small") and make("pacman").has_chance
    assert not Pacman("P.").has_chance


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("huge", "must be a name .tiny, small"),
        ("", "must be a name"),
        ("missing.txt", "does not exist"),
        ("\0.txt", "can't be read"),
        ("%_./%G%", "one P, not 0"),
        ("%P./%PG", "one P, not 2"),
        ("%P./%G", "not rectangular: its rows have 2 to 3"),
        ("%P./%X%", "unknown cell 'X'"),
        ("%P_/%G%", "no food"),
        ("P%./_%_", "can't reach the food in row 1, column 3"),
        ("P.G/GGG/GG_", "at most 4 ghosts, not 6"),
        ("P." + "_" * 63, "at most 64 rows"),
        ("/".join(["P." + "_" * 15] + ["_" * 17] * 15), "272 open cells, more than 256"),
        (5, "must be text"),
    ],
)  # fmt: skip
def test_broken_maps(text, why):
    with pytest.raises(InputError, match=why) as caught:
        Pacman(text)
    assert "\n" not in str(caught.value)


def test_bad_parameters():
    for steps in (0, -1, 1_000_001):
        with pytest.raises(InputError, match="max_steps"):
            Pacman(max_steps=steps)


GOOD = "__./_%_/.__ pacman 1,2 ghosts 3,2e score -1 steps 1 turn 1"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("up", "legal moves: east, south, stop"),
        ("east south", "move 2: move 'south' is not legal"),
        (GOOD.replace("__./", "__./__./"), "expected 3 rows of 3"),
        (GOOD.replace("_%_", "___"), "the map allows %"),
        (GOOD.replace("__.", "_.."), "the map allows _"),
        (GOOD.replace("pacman 1,2", "pacman 1,3"), "can't hold food"),
        (GOOD.replace("pacman 1,2", "pacman 2,2"), "open cell"),
        (GOOD.replace("pacman 1,2", ""), "open cell"),
        (GOOD.replace("ghosts 3,2e", ""), "1 ghosts, not 0"),
        (GOOD.replace("3,2e", "3,2x"), "ghost '3,2x'"),
        (GOOD.replace("3,2e", "3,2!21"), "ghost '3,2!21'"),
        (GOOD.replace("score -1", "score x"), "score 'x'"),
        (GOOD.replace("steps 1", "steps 9"), "from 0 to 5"),
        (GOOD.replace("turn 1", "turn 2"), "from 0 to 1"),
        (GOOD.replace("steps 1", "steps 0"), "turn must be 0"),
        (GOOD + " steps 1", "given twice"),
        (GOOD.replace("pacman", "pacmen"), "expected pacman"),
    ],
)
def test_bad_positions(text, why):
    with pytest.raises(InputError, match=why):
        TINY[2].parse_position(text)


@lru_cache
def texts():
    game, found = TINY[2], [GOOD]
    state = game.new()[0]
    while game.player(state) != TERMINAL:
        found.append(game.position_text(state))
        game.play(state, legal_actions(game, state)[-1])
    return found


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_fuzzed_positions_and_maps(data):
    letters = list(data.draw(st.sampled_from([*texts(), *MAPS.values()])))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(letters)))
        letters[at : at + data.draw(st.integers(0, 2))] = data.draw(
            st.text("%._oPG/ 0123456789,!nesw-\n\0é²", max_size=2)
        )
    text = "".join(letters)
    game = TINY[2]
    try:
        state = game.parse_position(text)
        assert game.parse_position(game.position_text(state)).tobytes() == state.tobytes()
    except InputError as error:
        assert "\n" not in str(error)
    try:
        other = Pacman(text)
        assert Pacman(other.map) == other and play_random_games(other, 1) > 0
    except InputError as error:
        assert "\n" not in str(error)
