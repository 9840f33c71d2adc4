"""A page on the loopback address: a sweep's cells while they arrive, and a bench for short runs.

It reads a store and runs short scenarios in the simulator; it decides nothing that the command line
cannot. Needs `fullpipe[serve]`.
"""
