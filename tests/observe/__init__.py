"""What operators watch: metrics, rules, alerts, runbook and dashboards, against the gateway and real Prometheus."""
