"""What applications do: pages, streams of datagrams, patterns of writing, and what a user may write
of them. Must never know an engine."""
