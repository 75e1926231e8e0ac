"""Names, catalog entries, signatures, errors and limits. Pure, except for the register of `redaction`."""
