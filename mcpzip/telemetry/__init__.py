"""Traces and metrics by OpenTelemetry.

The rule: nothing here is imported unless the config has ``telemetry``, and only `provider` and `traces`
import OpenTelemetry, which the extra ``otel`` brings.
"""
