"""Turns a script into a program for the engines."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from fullpipe.packetdrill import packets, shell, symbols
from fullpipe.packetdrill.script import (
    Call,
    Code,
    Command,
    Event,
    NotSupportedError,
    Packet,
    Script,
)

#: Options of a script that change nothing here: addresses and ports are the engine's.
_WITHOUT_EFFECT = frozenset(
    {
        "tolerance_usecs",
        "local_ip",
        "remote_ip",
        "netmask_ip",
        "gateway_ip",
        "bind_port",
        "connect_port",
        "init_scripts",
        "verbose",
        "quiet",
        "non_fatal",
        "tcp_ts_tick_usecs",
        "speed",
        "mtu",
    }
)
_IPV4_VALUES = {"ip_version": ("ipv4",), "mtu": ("1500",)}


@dataclass
class Program:
    """What an engine gets, and the events that its entries belong to."""

    script: Script
    text: str = ""
    events: list[Event] = field(default_factory=list)


def build(script: Script, name: str) -> Program:
    """The program of a script. Raises NotSupportedError."""
    for option, value in script.options.items():
        if option not in _WITHOUT_EFFECT and value not in _IPV4_VALUES.get(option, ()):
            raise NotSupportedError(1, f"option --{option}")
    program = Program(script)
    sysctls: dict[str, str] = {}
    defaults: dict[str, str] = {}
    if script.first is not None:
        sysctls, defaults = shell.settings(script.first.text, script.path, 1)
    ops = []
    for event in script.events:
        if isinstance(event.action, Command):
            changed, more = shell.settings(event.action.text, script.path, event.line)
            if changed or more:
                raise NotSupportedError(event.line, "settings in the middle of a script")
            continue
        program.events.append(event)
        ops.append(_op(event))
    document = {
        "name": name,
        "defaults": list(defaults.items()),
        "sysctls": list(sysctls.items()),
        "ops": ops,
    }
    program.text = json.dumps(document)
    return program


def _op(event: Event) -> dict[str, Any]:
    time = event.time
    op: dict[str, Any] = {"anchor": time.anchor, "at_us": time.at_us, "end_us": time.end_us}
    op["action"] = _action(event)
    return op


def _action(event: Event) -> dict[str, Any]:
    action = event.action
    match action:
        case Code():
            return {"info": {}}
        case Packet() if action.is_inbound:
            return {"inject": _segment(action, event.line)}
        case Packet():
            stamps = (option[1] for option in action.options or () if option[0] == "ts")
            return {"expect": {"bytes": action.bytes, "stamp": next(stamps, None)}}
        case Call():
            try:
                call = _call(action, event.line)
            except KeyError as error:
                raise NotSupportedError(event.line, f"symbol {error.args[0]}") from None
            except (TypeError, ValueError, IndexError):
                raise NotSupportedError(event.line, f"arguments of {action.name}()") from None
            return {"call": {"call": call, "blocks": action.blocks}}
        case _:
            raise TypeError(type(action))


def _segment(packet: Packet, line: int) -> dict[str, Any]:
    if packet.options is None:
        raise NotSupportedError(line, "a packet of the peer with <...>")
    return {
        "ecn": packet.ecn[0] if packet.ecn else 0,
        "flags": packet.flags,
        "sequence": packet.sequence,
        "bytes": packet.bytes,
        "ack": packet.ack or 0,
        "window": packet.window or 0,
        "options": packets.in_program(packet.options),
    }


def _call(call: Call, line: int) -> dict[str, Any]:
    values = call.arguments
    if "NULL" in values:
        raise NotSupportedError(line, f"{call.name}() with NULL")
    fd = values[0] if values and isinstance(values[0], int) else 0
    match call.name:
        case "socket":
            return {"socket": _socket(call, line)}
        case "bind" | "connect":
            return {call.name: {"fd": fd}}
        case "listen":
            return {"listen": {"fd": fd, "backlog": _number(values[1])}}
        case "accept":
            return {"accept": {"fd": fd, "new_fd": -1 if call.result is None else call.result}}
        case "setsockopt":
            level, name = _number(values[1]), _number(values[2])
            return {
                "setsockopt": {"fd": fd, "level": level, "name": name, "value": _option(values[3:])}
            }
        case "getsockopt":
            (length,) = values[4] if isinstance(values[4], list) else (values[4],)
            option = {"level": _number(values[1]), "name": _number(values[2])}
            return {"getsockopt": {"fd": fd, **option, "length": _number(length)}}
        case "fcntl":
            argument = _number(values[2]) if len(values) > 2 else 0
            return {"fcntl": {"fd": fd, "command": _number(values[1]), "argument": argument}}
        case "write" | "send" | "sendto":
            flags = _number(values[3]) if len(values) > 3 else 0
            return {"write": {"fd": fd, "bytes": _number(values[2]), "flags": flags}}
        case "read" | "recv" | "recvfrom":
            flags = _number(values[3]) if len(values) > 3 else 0
            return {"read": {"fd": fd, "bytes": _number(values[2]), "flags": flags}}
        case "shutdown":
            return {"shutdown": {"fd": fd, "how": _number(values[1])}}
        case "close":
            return {"close": {"fd": fd}}
        case _:
            raise NotSupportedError(line, f"{call.name}()")


def _socket(call: Call, line: int) -> dict[str, Any]:
    domain, kind, protocol = (symbols.number(value) for value in call.arguments)
    kind = kind or 0
    nonblocking = bool(kind & symbols.SYMBOLS["SOCK_NONBLOCK"])
    plain = kind & ~symbols.SYMBOLS["SOCK_NONBLOCK"] & ~symbols.SYMBOLS["SOCK_CLOEXEC"]
    is_tcp = plain == symbols.SYMBOLS["SOCK_STREAM"] and protocol in (0, 6, None)
    if not is_tcp or domain not in (None, symbols.SYMBOLS["AF_INET"]):
        raise NotSupportedError(line, "sockets other than TCP over IPv4")
    if call.result is None or call.result < 0:
        raise NotSupportedError(line, "socket() that fails")
    return {"fd": call.result, "nonblocking": nonblocking}


def _number(value: Any) -> int:
    result = symbols.number(value)
    if result is None or not -(1 << 31) <= result < 1 << 32:
        raise ValueError(value)
    # As a C int.
    return result - (1 << 32) if result >= 1 << 31 else result


def _option(arguments: list[Any]) -> list[int]:
    """The bytes of an option's value."""
    value, *length = arguments
    if isinstance(value, list) and value[:1] == ["string"]:
        return list(str(value[1]).encode())
    if isinstance(value, dict):
        numbers = [_number(each) for each in value["fields"]]
    elif isinstance(value, list):
        numbers = [_number(each) for each in value]
    else:
        numbers = [_number(value)]
    content = b"".join(number.to_bytes(4, "little", signed=True) for number in numbers)
    size = length[0] if length and isinstance(length[0], int) else len(content)
    if not 0 < size <= 256:
        raise ValueError(size)
    return list(content[:size].ljust(size, b"\0"))
