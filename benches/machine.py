"""Processing costs of the virtual machine's hosts, as keys of the simulator's: measured apart from
any contest (docs/evidence/agreement.md, "What the machine's hosts take")."""

#: One processor executes an instruction a nanosecond. A burst's packets reach the router one after
#: the other, as over a link of the sender's own.
WORK = {
    "packet_cost": "3500ns", "send_cost": "4us", "ack_cost": "6500ns", "access_rate": "3500mbit",
    "handshake_cost": "20us",
}  # fmt: skip
