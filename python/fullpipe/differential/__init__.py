"""The differential test of TCP: random scripts of a peer are played to a kernel's socket in the
virtual machine and to `fullpipe-tcp`, and compared after every event
(`crates/fullpipe-differential`). A script and an answer are JSON of one line.
"""
