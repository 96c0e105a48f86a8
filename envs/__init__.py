"""The rules of games, and environments made of them.

Importing this package registers the Gymnasium environments (`selfplay/ConnectFour-v0` and so on): at once if
Gymnasium is there already, otherwise as soon as somebody imports it. Nothing heavy is imported before it is needed.
"""

from selfplay_environments import register_when_imported

register_when_imported()
