"""The downstream side: the front desk, the session of one client, stdio."""
