"""Packets in packetdrill's notation."""

from __future__ import annotations

import re
from typing import Any

from fullpipe.packetdrill.scanner import Scanner
from fullpipe.packetdrill.script import NotSupportedError, Packet

FIN, SYN, RST, PSH, ACK, URG, ECE, CWR, AE = (1 << bit for bit in range(9))
_LETTERS = {
    "F": FIN,
    "S": SYN,
    "R": RST,
    "P": PSH,
    ".": ACK,
    "U": URG,
    "E": ECE,
    "W": CWR,
    "A": AE,
    "C": CWR,
    "N": AE,
}
_SHOWN = {FIN: "F", SYN: "S", RST: "R", PSH: "P", URG: "U", ECE: "E", CWR: "W", AE: "A", ACK: "."}
_ECN = {"noecn": (0,), "ect1": (1,), "ect0": (2,), "ce": (3,), "ect01": (1, 2)}
_ECN_NAMES = {1: "[ect1] ", 2: "[ect0] ", 3: "[ce] "}

_IP = re.compile(r"[\[(]([^\])]*)[\])]")
_OTHER = re.compile(r"(udp|icmp|UDP|ICMP|ipv4|ipv6|gre|mpls|encap)\b")
_PORTS = re.compile(r"(\d+)\s*>\s*(\d+)\s+(?=[A-Z.\-\d])")
_FLAGS = re.compile(r"-|([FSRPEWUACN]*)([0-7])?(\.)?")
_SEQUENCE = re.compile(r"(\d+):(\d+)\((\d+)\)")
_ACK = re.compile(r"ack\s+(\d+)")
_WINDOW = re.compile(r"win\s+(\d+)")
_URGENT = re.compile(r"urg\s+\d+")
_OPTIONS = re.compile(r"<([^>]*)>")
_BLOCK = re.compile(r"(\d+):(\d+)")
_HIGHEST = 1 << 32


def read_packet(scanner: Scanner, is_inbound: bool) -> Packet:
    """The packet behind `<` or `>`."""
    scanner.skip()
    start, line = scanner.position, scanner.line
    ecn = _read_ip(scanner)
    protocol = scanner.take(_OTHER)
    if protocol is not None:
        raise NotSupportedError(line, f"{protocol[1].upper()} packets")
    if scanner.take(_PORTS) is not None:
        raise NotSupportedError(line, "packets with ports")
    flags = _read_flags(scanner, line)
    numbers = scanner.need(_SEQUENCE, "START:END(LENGTH)")
    first, end, length = map(int, numbers.groups())
    if end != (first + length) % _HIGHEST or first >= _HIGHEST:
        raise scanner.error(f"{numbers[0]}: the end must be the start and the length")
    if length > 0xFFFF:
        raise NotSupportedError(line, "packets of more than 65535 bytes")
    ack = scanner.take(_ACK)
    window = scanner.take(_WINDOW)
    if scanner.take(_URGENT) is not None:
        raise NotSupportedError(line, "urgent data")
    if window is not None and int(window[1]) > 0xFFFF:
        raise scanner.error(f"win {window[1]}: must be at most 65535")
    return Packet(
        is_inbound,
        flags,
        first,
        length,
        int(ack[1]) % _HIGHEST if ack is not None else None,
        int(window[1]) if window is not None else None,
        ecn,
        _read_options(scanner, line),
        scanner.since(start),
    )


def _read_ip(scanner: Scanner) -> tuple[int, ...] | None:
    header = scanner.take(_IP)
    if header is None:
        return None
    word = header[1].strip()
    if word not in _ECN:
        raise NotSupportedError(scanner.line, f"IP header: {word.split()[0] if word else 'none'}")
    return _ECN[word]


def _read_flags(scanner: Scanner, line: int) -> int:
    flags = scanner.need(_FLAGS, "flags")
    if not flags[0]:
        raise scanner.error("expected flags")
    if flags[2] is not None:
        raise NotSupportedError(line, "accurate ECN (flags with a digit)")
    bits = sum(_LETTERS[letter] for letter in dict.fromkeys(flags[0]) if letter != "-")
    if bits & AE:
        raise NotSupportedError(line, "accurate ECN (flag A)")
    if bits & URG:
        raise NotSupportedError(line, "urgent data")
    return bits


def _read_options(scanner: Scanner, line: int) -> list[list[Any]] | None:
    text = scanner.take(_OPTIONS)
    if text is None:
        return []
    if text[1].strip() == "...":
        return None
    return [_option(part.split(), line) for part in text[1].split(",")]


def _option(words: list[str], line: int) -> list[Any]:
    match words:
        case ["nop"]:
            return ["nop"]
        case ["eol"]:
            return ["eol"]
        case ["sackOK"]:
            return ["sack_ok"]
        case ["mss", number] if number.isdigit():
            return ["mss", min(int(number), 0xFFFF)]
        case ["wscale", number] if number.isdigit():
            return ["wscale", min(int(number), 0xFF)]
        case ["TS", "val", value, "ecr", echo] if value.isdigit() and echo.isdigit():
            return ["ts", int(value) % _HIGHEST, int(echo) % _HIGHEST]
        case ["sack", *blocks] if all(_BLOCK.fullmatch(block) for block in blocks):
            return ["sack", [[int(n) % _HIGHEST for n in block.split(":")] for block in blocks]]
        case _:
            name = words[0] if words else "none"
            raise NotSupportedError(line, f"TCP option {name}")


def listed(options: list[Any]) -> list[list[Any]]:
    """Options of an answer as those of a packet."""
    return [_listed(option) for option in options]


def _listed(option: Any) -> list[Any]:
    if isinstance(option, str):
        return [option]
    ((name, value),) = option.items()
    return [name, *value] if name in ("ts", "other") else [name, value]


def in_program(options: list[list[Any]]) -> list[Any]:
    """Options of a packet as a program has them."""
    return [_in_program(*option) for option in options]


def _in_program(name: str, *values: Any) -> Any:
    match values:
        case ():
            return name
        case (value,):
            return {name: value}
        case _:
            return {name: list(values)}


def shown(segment: dict[str, Any]) -> str:
    """A packet of an answer."""
    ecn, flags = _ECN_NAMES.get(segment["ecn"], ""), segment["flags"]
    letters = "".join(letter for bit, letter in _SHOWN.items() if flags & bit) or "-"
    first, length = segment["sequence"], segment["bytes"]
    ack = f" ack {segment['ack']}" if flags & ACK else ""
    options = ",".join(map(_shown_option, listed(segment["options"])))
    last = f" <{options}>" if options else ""
    end = (first + length) % _HIGHEST
    return f"{ecn}{letters} {first}:{end}({length}){ack} win {segment['window']}{last}"


def _shown_option(option: list[Any]) -> str:
    match option:
        case ["ts", value, echo]:
            return f"TS val {value} ecr {echo}"
        case ["sack", blocks]:
            return "sack " + " ".join(f"{start}:{end}" for start, end in blocks)
        case ["sack_ok"]:
            return "sackOK"
        case [name, *values]:
            return " ".join(map(str, (name, *values)))
    return "?"
