"""The step "all inputs" of `fullpipe cc check`: what Frama-C says becomes a sentence, and with the
program itself each kind of undefined behaviour is named with its line."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from external_files import GROW, changed, works
from fullpipe.authoring import check
from fullpipe.base.errors import UserError
from fullpipe.base.installed import shipped
from fullpipe.congestion import userfiles
from fullpipe.congestion.userfiles.analysing import NoAnalysisError, alarms

needs_frama_c = pytest.mark.skipif(
    shutil.which("frama-c") is None, reason="needs frama-c (apt-get install frama-c-base)"
)

#: Frama-C 25.0 (Debian 12), check_on_ack of a file with an overflow and a division.
RECORDED = """\
[kernel] Parsing /tmp/fullpipe-cc-5vhn5iwp/mine.i (no preprocessing)
[eva] Analyzing an incomplete application starting at check_on_ack
[eva] Computing initial state
[eva] Initial state computed
[eva:initial-state] Values of globals at initialization
  anything ∈ [--..--]
  state ∈ [--..--]
[eva:alarm] mine.h:43: Warning: 
  signed overflow. assert -2147483648 ≤ x * 100000000;
[eva:alarm] mine.h:43: Warning: 
  signed overflow. assert x * 100000000 ≤ 2147483647;
[eva:alarm] {cc}/window.h:31: Warning: 
  division by zero. assert per ≢ 0;
[eva:alarm] mine.h:44: Warning: 
  out of bounds write.
  assert \\valid(&s->prior_cwnd + (unsigned int)(left & 3));
[eva:alarm] mine.h:45: Warning: 
  invalid RHS operand for shift. assert 0 ≤ left < 32;
[eva:alarm] mine.h:46: Warning: 
  accessing uninitialized left-value. assert \\initialized(&a[2]);
[eva] done for function check_on_ack
[eva:summary] ====== ANALYSIS SUMMARY ======
  ----------------------------------------------------------------------------
  7 functions analyzed (out of 44): 15% coverage.
  In these functions, 45 statements reached (out of 46): 97% coverage.
"""  # noqa: W291
#: The same of a file that calls what has no code.
UNKNOWN = """\
[kernel:annot:missing-spec] mine.h:43: Warning: 
  Neither code nor specification for function __builtin_popcount, generating default assigns
[eva:summary] ====== ANALYSIS SUMMARY ======
"""  # noqa: W291
REFUSED = """\
[kernel] Parsing /tmp/fullpipe-cc-1q44l84t/mine.i (no preprocessing)
[kernel] mine.h:12: User Error: 
  Unexpected error: statement expression not supported
[kernel] Frama-C aborted: invalid user input.
"""  # noqa: W291
#: What stands where the window grows -> what is not excluded.
UNDEFINED = {
    "ctl->cwnd += 10 / left;": "division by zero",
    "ctl->cwnd = 1u << left;": "a shift by too many bits",
    "s32 x = (s32)left; ctl->cwnd += (u32)(x * 100000000) >> 31;": "signed overflow",
    "(&s->prior_cwnd)[left & 3] = 1;": "a write out of bounds",
    "u32 a[8]; if (left < 3) a[left & 7] = 1; ctl->cwnd += a[2] & 7;":
        "a read of what was not written",
}  # fmt: skip


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def test_alarms_are_read_in_their_order_with_line_and_kind() -> None:
    assert alarms(RECORDED.replace("{cc}", str(shipped("cc")))) == [
        ("mine.h:43", "signed overflow"),
        ("mine.h:43", "signed overflow"),
        ("window.h:31", "division by zero"),
        ("mine.h:44", "a write out of bounds"),
        ("mine.h:45", "a shift by too many bits"),
        ("mine.h:46", "a read of what was not written"),
    ]
    quiet = RECORDED[: RECORDED.index("[eva:alarm]")] + RECORDED[RECORDED.index("[eva:summary]") :]
    assert alarms(quiet) == []


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (UNKNOWN, "does not know __builtin_popcount(), which is called"),
        (REFUSED, "does not read this file: Unexpected error: statement expression"),
        ("", "does not read this file"),
    ],
)
def test_an_analysis_of_something_else_is_no_answer(said: str, words: str) -> None:
    with pytest.raises(NoAnalysisError, match=words.replace("(", r"\(").replace(")", r"\)")):
        alarms(said)


def test_without_the_program_the_step_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = shutil.which
    monkeypatch.setattr(
        "fullpipe.congestion.userfiles.analysing.shutil.which",
        lambda name: None if name == "frama-c" else found(name),
    )
    source = userfiles.read(works(tmp_path))
    step = check._step("all inputs", lambda: userfiles.every_input(source))
    assert step.holds is None
    assert "apt-get install frama-c-base" in step.words


@needs_frama_c
@pytest.mark.parametrize("code", UNDEFINED)
def test_what_is_undefined_for_some_input_is_named_with_its_line(code: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as finding:
        userfiles.every_input(userfiles.read(changed(tmp_path, GROW, code)))
    assert f"mine.h:43: {UNDEFINED[code]} not excluded, in on_ack" in str(finding.value)


@pytest.mark.slow
@needs_frama_c
@pytest.mark.parametrize(
    "name", ["mine", "reno", "cubic", "dctcp", "prague", "bbr1", "bbr3", "tarn"]
)
def test_nothing_in_the_template_and_the_built_in_algorithms_is_undefined(
    name: str, tmp_path: Path
) -> None:
    if name == "mine":
        path = works(tmp_path)
    else:
        for file in shipped("cc").glob(f"{name}*.h"):
            shutil.copy(file, tmp_path)
        path = tmp_path / f"{name}.h"
    said = userfiles.every_input(userfiles.read(path))
    assert (
        said == "init, on_ack, on_event: no undefined behaviour for any state, constants and facts"
    )


@needs_frama_c
def test_a_division_that_only_an_unlikely_state_reaches_is_found(tmp_path: Path) -> None:
    # No connection of the fuzzer has this state.
    rare = "if (s->prior_cwnd == 123456789u) ctl->cwnd = left / (s->prior_cwnd - 123456789u);"
    with pytest.raises(UserError, match="division by zero not excluded, in on_ack"):
        userfiles.every_input(userfiles.read(changed(tmp_path, GROW, rare)))
