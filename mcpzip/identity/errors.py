"""Why nobody is let in by a token. Their texts end a sentence that begins with the token or the issuer."""


class TokenError(Exception):
    """The token is not valid (RFC 6750, 3.1). Its text says why in printable ASCII, and quotes nothing."""


class IssuerUnavailableError(Exception):
    """The issuer could not be asked, so nothing is known of the token: it may be valid."""
