"""Linux's constants that scripts name, for x86 and Arm (asm-generic)."""

from __future__ import annotations

from typing import Any

SYMBOLS: dict[str, int] = {
    "AF_INET": 2, "PF_INET": 2, "AF_INET6": 10, "SOCK_STREAM": 1, "SOCK_DGRAM": 2,
    "SOCK_NONBLOCK": 0o4000, "SOCK_CLOEXEC": 0o2000000,
    "IPPROTO_IP": 0, "IPPROTO_TCP": 6, "IPPROTO_UDP": 17, "IPPROTO_MPTCP": 262,
    "SOL_IP": 0, "SOL_SOCKET": 1, "SOL_TCP": 6,
    "SO_REUSEADDR": 2, "SO_ERROR": 4, "SO_SNDBUF": 7, "SO_RCVBUF": 8, "SO_KEEPALIVE": 9,
    "SO_PRIORITY": 12, "SO_LINGER": 13, "SO_REUSEPORT": 15, "SO_RCVLOWAT": 18,
    "SO_RCVTIMEO": 20, "SO_SNDTIMEO": 21, "SO_SNDBUFFORCE": 32, "SO_RCVBUFFORCE": 33,
    "SO_TIMESTAMPING": 37, "SO_BUSY_POLL": 46, "SO_MAX_PACING_RATE": 47, "SO_ZEROCOPY": 60,
    "IP_TOS": 1, "IP_TTL": 2, "IP_MTU_DISCOVER": 10, "IP_RECVERR": 11, "IP_MTU": 14,
    "IP_PMTUDISC_DONT": 0, "IP_PMTUDISC_WANT": 1, "IP_PMTUDISC_DO": 2, "IP_PMTUDISC_PROBE": 3,
    "TCP_NODELAY": 1, "TCP_MAXSEG": 2, "TCP_CORK": 3, "TCP_KEEPIDLE": 4, "TCP_KEEPINTVL": 5,
    "TCP_KEEPCNT": 6, "TCP_SYNCNT": 7, "TCP_LINGER2": 8, "TCP_DEFER_ACCEPT": 9,
    "TCP_WINDOW_CLAMP": 10, "TCP_INFO": 11, "TCP_QUICKACK": 12, "TCP_CONGESTION": 13,
    "TCP_MD5SIG": 14, "TCP_THIN_LINEAR_TIMEOUTS": 16, "TCP_THIN_DUPACK": 17,
    "TCP_USER_TIMEOUT": 18, "TCP_FASTOPEN": 23, "TCP_TIMESTAMP": 24, "TCP_NOTSENT_LOWAT": 25,
    "TCP_CC_INFO": 26, "TCP_SAVE_SYN": 27, "TCP_FASTOPEN_CONNECT": 30, "TCP_FASTOPEN_KEY": 33,
    "TCP_FASTOPEN_NO_COOKIE": 34, "TCP_INQ": 36, "TCP_TX_DELAY": 37, "TCP_RTO_MAX_MS": 44,
    "TCP_RTO_MIN_US": 45,
    "F_GETFL": 3, "F_SETFL": 4, "O_RDONLY": 0, "O_WRONLY": 1, "O_RDWR": 2, "O_NONBLOCK": 0o4000,
    "MSG_OOB": 1, "MSG_PEEK": 2, "MSG_TRUNC": 0x20, "MSG_DONTWAIT": 0x40, "MSG_EOR": 0x80,
    "MSG_WAITALL": 0x100, "MSG_ERRQUEUE": 0x2000, "MSG_NOSIGNAL": 0x4000, "MSG_MORE": 0x8000,
    "MSG_ZEROCOPY": 0x4000000, "MSG_FASTOPEN": 0x20000000,
    "SHUT_RD": 0, "SHUT_WR": 1, "SHUT_RDWR": 2,
}  # fmt: skip

ERRNO: dict[str, int] = {
    "EPERM": 1, "EINTR": 4, "EBADF": 9, "EAGAIN": 11, "EWOULDBLOCK": 11, "ENOMEM": 12,
    "EACCES": 13, "EFAULT": 14, "EINVAL": 22, "EPIPE": 32, "ENOTSOCK": 88, "EDESTADDRREQ": 89,
    "EMSGSIZE": 90, "ENOPROTOOPT": 92, "EOPNOTSUPP": 95, "EADDRINUSE": 98, "ENETUNREACH": 101,
    "ECONNABORTED": 103, "ECONNRESET": 104, "ENOBUFS": 105, "EISCONN": 106, "ENOTCONN": 107,
    "ETIMEDOUT": 110, "ECONNREFUSED": 111, "EHOSTUNREACH": 113, "EALREADY": 114,
    "EINPROGRESS": 115,
}  # fmt: skip
ERRNO_NAMES = {number: name for name, number in ERRNO.items()}


def number(value: Any) -> int | None:
    """A number, or the value of symbols that `|` joins. None: it is another value. Raises KeyError
    with the name of a symbol that is not listed."""
    if isinstance(value, int):
        return value
    if not isinstance(value, str):
        return None
    total = 0
    for name in value.split("|"):
        total |= int(name, 0) if name.strip().isdigit() else SYMBOLS[name.strip()]
    return total
