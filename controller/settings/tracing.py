"""[tracing]: where the spans of intervals are sent."""

from controller.settings.addresses import TraceReceiver
from controller.settings.section import Section


class TracingSettings(Section):
    """Traces for OpenTelemetry: what each interval spent its time on, from the sweep to the commands."""

    endpoint: TraceReceiver = ""
    """Where an OpenTelemetry collector takes OTLP over HTTP: http://host:4318, without a path.  Without it nothing is
    sent."""
