"""The files with which operators observe the gateway: metrics, rules, alerts, runbook and dashboards. They are checked
against the gateway and a real Prometheus."""
