"""Formats durations for the user."""

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def age(seconds: float) -> str:
    """``seconds`` in its largest whole unit: ``3 d``, ``2 h``, ``5 min``, ``12 s``."""
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{max(0, int(seconds))} s"
