"""Traffic of many flows that come and go: what a user may write of it, distributions of sizes,
traces and where they come from, and the theory that its yardsticks are held against. Must never
know an engine."""
