"""Files that models describe: TOML into a model, with file and key in every refusal."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from fullpipe.base.errors import UserError
from fullpipe.base.refusals import explain
from fullpipe.base.supplied import read_regular
from fullpipe.base.toml import parse_toml

_MOST_BYTES = 16 << 20
Model = TypeVar("Model", bound=BaseModel)


def read_model(model: type[Model], path: Path) -> Model:
    """What a file holds. Raises UserError naming file and key."""
    try:
        return model.model_validate(parse_toml(read_regular(path, _MOST_BYTES).decode("utf-8")))
    except UnicodeDecodeError:
        raise UserError(f"{path}: not a text file in UTF-8") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path}: not TOML: {error}") from None
    except ValidationError as error:
        raise UserError(f"{path}: {explain(error, model)}") from None
