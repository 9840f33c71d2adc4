"""Scripts in packetdrill's language: read, turned into a program (`crates/fullpipe-differential`,
`packetdrill`), played to the simulator's TCP or to a kernel's in the virtual machine, and judged.
"""
