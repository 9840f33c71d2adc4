"""The differential tests: random scripts are played to a kernel in the virtual machine and to the
model, and compared after every event (`crates/fullpipe-differential`): a peer's packets to a socket
and to `fullpipe-tcp`, arriving packets to a queue discipline and to that of `fullpipe-net`. A
script and an answer are JSON of one line.
"""
