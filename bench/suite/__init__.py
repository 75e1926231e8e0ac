"""`python -m bench`: mcpzip beside a direct connection, a relay, an empty server on the SDK and its peers.

    figures     what is measured, the figures, and their statistics: data
    plan        the order of the turns: pure
    subjects    what is measured beside what, and how each is started
    place       a subject in a home of its own, and its processes
    probes      one turn: what is done to a subject, and what is noted
    run         plays a plan within its time
    machine     what the figures were measured on
    tables      the figures as Markdown: pure
    plots       the figures as SVG: pure
    options     the command line

The rule: every subject gets the same turns, in one run, one after another in each round.
"""
