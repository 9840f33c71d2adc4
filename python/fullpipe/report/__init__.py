"""Reports: a self-contained HTML page, a folder of pages, or static figures, from recordings.

Knows recordings, metrics and models, never engines. Text from a recording is hostile until escaped.
"""
