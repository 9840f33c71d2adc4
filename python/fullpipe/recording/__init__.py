"""Recordings on disk: the one writer and reader."""
