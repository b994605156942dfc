"""The decision service: cases over HTTP, never over capacity, nothing lost.

Start it with ``shortlist serve``, and ask it over HTTP, for example by :mod:`shortlist.client`. It
needs the extra `service`; `shortlist stream`, which keeps its decisions in the same kind of
database, needs the extra `cli` only.
"""
