"""What the virtual machine's hosts take, as keys of the simulator's: measured apart from any
contest (docs/agreement.md, "What the machine's hosts take")."""

#: One processor executes an instruction a nanosecond.
WORK = {"packet_cost": "7us", "send_cost": "4us", "ack_cost": "10us"}
