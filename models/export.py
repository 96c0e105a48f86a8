"""A checkpoint as an ONNX file, for other programs.

Input `planes` [batch, *observation_shape], the game's observation from the mover's side. Outputs `policy`
[batch, num_actions], logits over all actions, legal or not, and `values` [batch, num_players] in network units,
relative order: utility = value * scale + offset, both in the file's metadata.
"""

import os
from pathlib import Path

from envs.errors import InputError
from models.checkpoint import Checkpoint
from models.graph import Onnx
from models.network import folded


def export_onnx(checkpoint: Checkpoint, path: Path) -> None:
    """Writes the model; a file that is already there is replaced."""
    path = Path(path)
    network = checkpoint.network
    builder = Onnx()
    model = builder.model(folded(network))
    facts = {"game": checkpoint.game_spec, "scale": repr(network.scale), "offset": repr(network.offset)}
    builder.onnx.helper.set_model_props(model, facts)
    aside = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with aside.open("wb") as file:
            file.write(model.SerializeToString())
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except OSError as error:
        raise InputError(f"file {str(path)!r} can't be written: {error.strerror}") from None
    finally:
        aside.unlink(missing_ok=True)


__all__ = ["export_onnx"]
