"""Traffic of many flows that come and go: its keys, distributions of sizes, traces and captures.

Must never know an engine."""
