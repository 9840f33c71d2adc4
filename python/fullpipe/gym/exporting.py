"""Writes a trained policy as congestion controls: a class in Python, and C for kernels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fullpipe.authoring.new import check_name
from fullpipe.base.errors import UserError
from fullpipe.congestion.policy import ACTIVATIONS, FEATURES, Layer
from fullpipe.congestion.userfiles.source import CONTRACT_VERSION

_TEMPLATE = Path(__file__).with_name("policy.h.in")
#: A function's frame in C has at most 4096 bytes (cc check), 512 in eBPF: two layers' values.
_MOST_OUTPUTS = 64
#: A sum of 64 products of such weights in Q16 and of values below 2^31 fits 64 bits.
_MOST_WEIGHT = 500.0
_ONE = 65536


def export(
    layers: Sequence[Layer], folder: str | Path = ".", name: str = "learned"
) -> tuple[Path, Path]:
    """Writes NAME.py with its weights in NAME_weights.py, a class `fullpipe.Policy`, and NAME.h in
    C; returns the paths of the class and of the C file.

    `layers`: (weights, biases, activation) of each layer of a network from an observation
    (`FEATURES`) to one action; weights have a row for each output, and the activation is "tanh",
    "relu" or "linear". Both cut the action to -1 to 1. C computes in 1/65536. Raises UserError for
    layers that do not fit, a bad name, or a file that exists."""
    check_name(name)
    checked = _checked(layers)
    target = Path(folder)
    texts = {
        target / f"{name}_weights.py": _weights_text(name, checked),
        target / f"{name}.py": _class_text(name),
        target / f"{name}.h": _c_text(name, checked),
    }
    for path in texts:
        if path.exists():
            raise UserError(f"{path}: exists already; choose another name")
    try:
        target.mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{error.filename}: cannot be written: {error.strerror}") from None
    return target / f"{name}.py", target / f"{name}.h"


def _checked(layers: Sequence[Layer]) -> list[Layer]:
    """The layers as lists of numbers."""
    if not layers:
        raise UserError("layers: at least one is needed")
    inputs, checked = len(FEATURES), list[Layer]()
    for index, (weights, biases, activation) in enumerate(layers):
        where = f"layers[{index}]"
        try:
            rows, offsets = np.asarray(weights, np.float64), np.asarray(biases, np.float64)
        except (TypeError, ValueError):
            raise UserError(f"{where}: weights and biases must be arrays of numbers") from None
        outputs = len(offsets) if offsets.ndim == 1 else 0
        if rows.shape != (outputs, inputs) or not 1 <= outputs <= _MOST_OUTPUTS:
            raise UserError(
                f"{where}: weights {rows.shape} and biases {offsets.shape} must be (outputs, "
                f"{inputs}) and (outputs,), of 1 to {_MOST_OUTPUTS} outputs"
            )
        both = np.concatenate([rows.ravel(), offsets])
        if not np.isfinite(both).all() or np.abs(both).max() > _MOST_WEIGHT:
            raise UserError(f"{where}: its numbers must be finite, and at most {_MOST_WEIGHT:g}")
        if activation not in ACTIVATIONS:
            raise UserError(f"{where}: {activation!r}: must be one of {', '.join(ACTIVATIONS)}")
        checked.append((rows.tolist(), offsets.tolist(), activation))
        inputs = outputs
    if inputs != 1:
        raise UserError(f"layers: the last one has {inputs} outputs; an action is one number")
    return checked


def _class_text(name: str) -> str:
    title = "".join(part.capitalize() for part in name.split("_"))
    return (
        f'"""A trained policy, written by fullpipe.gym.export."""\n\n'
        f"from {name}_weights import LAYERS\n\nimport fullpipe\n\n\n"
        f"class {title}(fullpipe.Policy):\n    layers = LAYERS\n"
    )


def _weights_text(name: str, layers: Sequence[Layer]) -> str:
    rows = "".join(f"    {layer!r},\n" for layer in layers)
    return f'"""Weights, biases and activation of each layer of {name}."""\n\nLAYERS = (\n{rows})\n'


def _c_text(name: str, layers: Sequence[Layer]) -> str:
    written = [_c_layer(index, *layer) for index, layer in enumerate(layers)]
    sizes = [len(biases) for _, biases, _ in layers]
    values = ", ".join(f"v{index}[{size}]" for index, size in enumerate(sizes))
    calls = "".join(
        f"\t@_layer{index}({'seen' if index == 0 else f'v{index - 1}'}, v{index});\n"
        for index in range(len(layers))
    )
    act = (
        "/* The action for an observation. */\n"
        f"CC_INLINE s32 @_act(const s32 *seen)\n{{\n\ts32 {values};\n\n{calls}"
        f"\treturn v{len(layers) - 1}[0];\n}}"
    )
    text = _TEMPLATE.read_text(encoding="utf-8").replace("@LAYERS", "\n\n".join([*written, act]))
    return re.sub("@V\\b", str(CONTRACT_VERSION), text).replace("@", name)


def _c_layer(
    index: int, weights: Sequence[Sequence[float]], biases: Sequence[float], activation: str
) -> str:
    """A function that computes one layer, without tables: loaders of eBPF take no constant arrays
    of a file."""
    lines = []
    for output, (row, bias) in enumerate(zip(weights, biases, strict=True)):
        terms = [f"{round(bias * _ONE)} * {_ONE}ll"]
        terms += [
            f"(s64)from[{at}] * {stored}"
            for at, stored in enumerate(round(weight * _ONE) for weight in row)
            if stored
        ]
        joined = " +\n\t\t\t".join(terms)
        lines.append(f"\tto[{output}] = @_{activation}(({joined}) >> 16);\n")
    body = "".join(lines)
    return f"CC_INLINE void @_layer{index}(const s32 *from, s32 *to)\n{{\n{body}}}"
