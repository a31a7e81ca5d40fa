package main

import "encoding/json"

// panel is a chart. Its place in the table is its id, so that links to it stay.
type panel struct {
	title, about string
	unit         string // of Grafana
	stacked      bool
	queries      []query
}

type query struct {
	expr   string // <holdfast.lost> stands for that metric, and $f for the filter of job and instance
	legend string
}

type row struct {
	title  string
	panels []panel
}

const filter = `job=~"$job", instance=~"$instance"`

// rows are the dashboard. What says that something is wrong comes first.
var rows = []row{
	{"Is anything wrong", []panel{
		{"Leases lost", "Any is worth a look: two holders may have overlapped.", "ops", true, []query{{`sum by (holdfast_reason) (rate(<holdfast.lost>{$f}[$__rate_interval]))`, "{{holdfast_reason}}"}}},
		{"Failed renewals", "They are tried again until the lease ends.", "ops", false, []query{{`sum by (instance) (rate(<holdfast.renewals>{$f, holdfast_outcome="failed"}[$__rate_interval]))`, "{{instance}}"}}},
		{"Errors of Lock and TryLock", "Redis could not be asked.", "ops", true, []query{{`sum by (holdfast_type) (rate(<holdfast.acquire.duration>_count{$f, holdfast_outcome="error"}[$__rate_interval]))`, "{{holdfast_type}}"}}},
		{"Pub/sub connections lost", "Waiters poll until the connection is restored.", "ops", false, []query{{`sum by (instance) (rate(<holdfast.pubsub.reconnects>{$f}[$__rate_interval]))`, "{{instance}}"}}},
		{"Left of the lease at a renewal, worst 1 %", "Two thirds are normal. Below a fifth, leases are about to be lost.", "percentunit", false, []query{{`histogram_quantile(0.01, sum by (le) (rate(<holdfast.renewal.slack>_bucket{$f}[$__rate_interval])))`, "worst 1 %"}}},
		{"Requests in trouble", "Requests that failed, were refused or took too long.", "ops", false, []query{{`sum by (instance) (rate(<holdfast.troubles>{$f}[$__rate_interval]))`, "{{instance}}"}}},
	}},
	{"Waiting", []panel{
		{"Time until a lock is granted", "From the call of Lock to the grant.", "s", false, []query{
			{`histogram_quantile(0.5, sum by (le, holdfast_type) (rate(<holdfast.acquire.duration>_bucket{$f, holdfast_outcome="acquired"}[$__rate_interval])))`, "{{holdfast_type}} p50"},
			{`histogram_quantile(0.99, sum by (le, holdfast_type) (rate(<holdfast.acquire.duration>_bucket{$f, holdfast_outcome="acquired"}[$__rate_interval])))`, "{{holdfast_type}} p99"},
		}},
		{"Callers that wait", "", "short", true, []query{{`sum by (instance) (<holdfast.waiters>{$f})`, "{{instance}}"}}},
		{"Oldest wait", "A caller that starves, or a holder that is stuck.", "s", false, []query{{`max by (instance) (<holdfast.waiting.oldest>{$f})`, "{{instance}}"}}},
		{"Not acquired, and timed out", "TryLock of a lock that was held, and Lock whose context ended.", "ops", true, []query{{`sum by (holdfast_outcome) (rate(<holdfast.acquire.duration>_count{$f, holdfast_outcome=~"not_acquired|timeout|canceled"}[$__rate_interval]))`, "{{holdfast_outcome}}"}}},
	}},
	{"Holding", []panel{
		{"Locks held", "", "short", true, []query{{`sum by (instance) (<holdfast.held>{$f})`, "{{instance}}"}}},
		{"Time for which locks are held", "", "s", false, []query{
			{`histogram_quantile(0.5, sum by (le, holdfast_type) (rate(<holdfast.hold.duration>_bucket{$f}[$__rate_interval])))`, "{{holdfast_type}} p50"},
			{`histogram_quantile(0.99, sum by (le, holdfast_type) (rate(<holdfast.hold.duration>_bucket{$f}[$__rate_interval])))`, "{{holdfast_type}} p99"},
		}},
		{"Oldest hold", "", "s", false, []query{{`max by (instance) (<holdfast.held.oldest>{$f})`, "{{instance}}"}}},
		{"Time of Unlock, p99", "", "s", false, []query{{`histogram_quantile(0.99, sum by (le, holdfast_type) (rate(<holdfast.release.duration>_bucket{$f}[$__rate_interval])))`, "{{holdfast_type}}"}}},
	}},
	{"How locks change hands", []panel{
		{"Grants", "handoff: local, without Redis. grant: remote. fast: the lock was free. wait: by a later request. reentry: by the same owner.", "ops", true, []query{{`sum by (holdfast_wait_mode) (rate(<holdfast.grants>{$f}[$__rate_interval]))`, "{{holdfast_wait_mode}}"}}},
		{"Polls", "Waiters that sent a request because no message came.", "ops", false, []query{{`sum by (instance) (rate(<holdfast.polls>{$f}[$__rate_interval]))`, "{{instance}}"}}},
		{"Channels subscribed", "", "short", false, []query{{`sum by (instance) (<holdfast.pubsub.subscriptions>{$f})`, "{{instance}}"}}},
		{"Renewals", "", "ops", true, []query{{`sum by (holdfast_outcome) (rate(<holdfast.renewals>{$f}[$__rate_interval]))`, "{{holdfast_outcome}}"}}},
	}},
	{"Redis, as redisotel sees it", []panel{
		{"Connections", "", "short", true, []query{{`sum by (state) (db_client_connections_usage{$f})`, "{{state}}"}}},
		{"Waits for a connection that timed out", "", "ops", false, []query{{`sum by (instance) (rate({__name__=~"db_client_connections_timeouts(_total)?", $f}[$__rate_interval]))`, "{{instance}}"}}},
	}},
}

type object = map[string]any

const (
	columns     = 24 // of Grafana's grid
	panelWidth  = 6
	panelHeight = 7
)

// newDashboard returns Grafana's JSON.
func newDashboard(metrics map[string]metric) ([]byte, error) {
	source := object{"type": "prometheus", "uid": "${datasource}"}
	var panels []any
	y, id := 0, 0
	for _, r := range rows {
		id++
		panels = append(panels, object{"id": id, "type": "row", "title": r.title, "collapsed": false, "panels": []any{}, "gridPos": object{"x": 0, "y": y, "w": columns, "h": 1}})
		y++
		x := 0
		for _, p := range r.panels {
			id++
			var targets []any
			for i, q := range p.queries {
				if err := known(q.expr, metrics); err != nil {
					return nil, err
				}
				if expr, ok := fill(q.expr, metrics); ok {
					targets = append(targets, object{"refId": string(rune('A' + i)), "datasource": source, "expr": filtered(expr), "legendFormat": q.legend})
				}
			}
			if len(targets) == 0 {
				continue
			}
			if x+panelWidth > columns {
				x, y = 0, y+panelHeight
			}
			stacking := "none"
			if p.stacked {
				stacking = "normal"
			}
			panels = append(panels, object{
				"id": id, "type": "timeseries", "title": p.title, "description": p.about, "datasource": source, "targets": targets,
				"gridPos":     object{"x": x, "y": y, "w": panelWidth, "h": panelHeight},
				"fieldConfig": object{"defaults": object{"unit": p.unit, "min": 0, "custom": object{"fillOpacity": 10, "stacking": object{"mode": stacking, "group": "A"}}}, "overrides": []any{}},
				"options":     object{"legend": object{"displayMode": "list", "placement": "bottom"}, "tooltip": object{"mode": "multi"}},
			})
			x += panelWidth
		}
		y += panelHeight
	}
	variable := func(name, label string) object {
		return object{
			"name": name, "label": label, "type": "query", "datasource": source, "refresh": 2, "includeAll": true, "multi": true, "allValue": ".*",
			"query":   object{"qryType": 1, "query": "label_values(" + metrics["holdfast.held"].prometheus() + ", " + name + ")", "refId": "variable"},
			"current": object{"selected": true, "text": []string{"All"}, "value": []string{"$__all"}},
		}
	}
	text, err := json.MarshalIndent(object{
		"uid": "holdfast", "title": "Holdfast", "description": "Distributed locks on Redis. Generated by tools/dashboard.",
		"tags": []string{"holdfast", "redis"}, "schemaVersion": 39, "version": 1, "editable": true, "graphTooltip": 1, "refresh": "10s", "timezone": "browser",
		"time": object{"from": "now-1h", "to": "now"}, "panels": panels, "annotations": object{"list": []any{}},
		"templating": object{"list": []any{
			object{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "current": object{}},
			variable("job", "Job"), variable("instance", "Instance"),
		}},
	}, "", "  ")
	return append(text, '\n'), err
}
