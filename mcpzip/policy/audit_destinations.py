"""Opens the destination of the audit log that a config asks for."""

import errno

from mcpzip.config.paths import audit_path
from mcpzip.config.schema import AUDIT_STDOUT, AuditConfig
from mcpzip.policy import audit_stdout
from mcpzip.policy.audit_destination import Destination, Make
from mcpzip.policy.audit_file_writer import FileWriter

INSTALL = 'the audit log in PostgreSQL needs the extra postgres: pip install "mcpzip[postgres]"'


def open_destination(audit: AuditConfig, config_path: str) -> Destination:
    """Where the log of the config at ``config_path`` is written."""
    if audit.to == AUDIT_STDOUT and audit_stdout.is_claimed():
        return audit_stdout.StdoutWriter()
    if "://" in audit.to:
        try:
            from mcpzip.policy.audit_postgres import PostgresWriter
        except ImportError:
            return _Missing()
        return PostgresWriter(audit.to)
    return FileWriter(audit.path or audit_path(config_path), is_ours=not audit.path)


class _Missing:
    """A destination for which a package is missing."""

    place, waits = "PostgreSQL", False

    def append(self, make: Make) -> None:
        raise OSError(errno.ENOSYS, INSTALL)

    def close(self) -> None:
        """There is nothing to close."""
