"""What everything else speaks of: names, entries, signatures, errors. Pure; imports nothing of ours."""
